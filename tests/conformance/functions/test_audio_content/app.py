"""A tool that answers with a sound."""

import io
import wave

from mcp_functions import serve, tool
from mcp_functions.content import Audio


@tool
def test_audio_content() -> Audio:
    """Return a tenth of a second of silence."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 1, 8000, 0, "NONE", ""))
        sound.writeframes(bytes([128]) * 800)
    return Audio(file.getvalue(), "audio/wav")


handler = serve(test_audio_content)
