"""The patches of MiniStack. After the first release, a new one needs its gap named in the changelog."""

from . import apigateway, cloudformation, cognito, iam, runtime

VERSION = "1.5.33"
PATCHES = (*apigateway.PATCHES, *iam.PATCHES, *runtime.PATCHES, *cloudformation.PATCHES, *cognito.PATCHES)
