"""The second placement: the same handlers in one Lambda, which is the endpoint itself."""

from pathlib import Path

from mcp_functions import serve
from tests.conformance.functions.confirm_delete.app import confirm_delete
from tests.conformance.functions.failing_job.app import failing_job
from tests.conformance.functions.greet.app import greet
from tests.conformance.functions.hello.app import hello
from tests.conformance.functions.json_schema_2020_12_tool.app import json_schema_2020_12_tool
from tests.conformance.functions.multi_input.app import multi_input
from tests.conformance.functions.protocol_error_job.app import protocol_error_job
from tests.conformance.functions.slow_compute.app import slow_compute
from tests.conformance.functions.static_binary.app import static_binary
from tests.conformance.functions.static_text.app import static_text
from tests.conformance.functions.template.app import template
from tests.conformance.functions.test_audio_content.app import test_audio_content
from tests.conformance.functions.test_elicitation.app import test_elicitation
from tests.conformance.functions.test_elicitation_sep1034_defaults.app import test_elicitation_sep1034_defaults
from tests.conformance.functions.test_elicitation_sep1330_enums.app import test_elicitation_sep1330_enums
from tests.conformance.functions.test_embedded_resource.app import test_embedded_resource
from tests.conformance.functions.test_error_handling.app import test_error_handling
from tests.conformance.functions.test_image_content.app import test_image_content
from tests.conformance.functions.test_input_required_result_capabilities.app import (
    test_input_required_result_capabilities,
)
from tests.conformance.functions.test_input_required_result_elicitation.app import (
    test_input_required_result_elicitation,
)
from tests.conformance.functions.test_input_required_result_list_roots.app import test_input_required_result_list_roots
from tests.conformance.functions.test_input_required_result_multi_round.app import (
    test_input_required_result_multi_round,
)
from tests.conformance.functions.test_input_required_result_multiple_inputs.app import (
    test_input_required_result_multiple_inputs,
)
from tests.conformance.functions.test_input_required_result_prompt.app import test_input_required_result_prompt
from tests.conformance.functions.test_input_required_result_request_state.app import (
    test_input_required_result_request_state,
)
from tests.conformance.functions.test_input_required_result_sampling.app import test_input_required_result_sampling
from tests.conformance.functions.test_input_required_result_tampered_state.app import (
    test_input_required_result_tampered_state,
)
from tests.conformance.functions.test_logging_tool.app import test_logging_tool
from tests.conformance.functions.test_missing_capability.app import test_missing_capability
from tests.conformance.functions.test_multiple_content_types.app import test_multiple_content_types
from tests.conformance.functions.test_prompt_with_arguments.app import test_prompt_with_arguments
from tests.conformance.functions.test_prompt_with_embedded_resource.app import test_prompt_with_embedded_resource
from tests.conformance.functions.test_prompt_with_image.app import test_prompt_with_image
from tests.conformance.functions.test_reconnection.app import test_reconnection
from tests.conformance.functions.test_sampling.app import test_sampling
from tests.conformance.functions.test_simple_prompt.app import test_simple_prompt
from tests.conformance.functions.test_simple_text.app import test_simple_text
from tests.conformance.functions.test_streaming_elicitation.app import test_streaming_elicitation
from tests.conformance.functions.test_tool_with_logging.app import test_tool_with_logging
from tests.conformance.functions.test_tool_with_progress.app import test_tool_with_progress
from tests.conformance.functions.test_tool_with_task.app import test_tool_with_task
from tests.conformance.functions.test_x_mcp_header.app import work_in_region
from tests.conformance.functions.watched_resource.app import watched_resource

handler = serve(
    confirm_delete,
    failing_job,
    greet,
    multi_input,
    protocol_error_job,
    slow_compute,
    test_tool_with_task,
    hello,
    json_schema_2020_12_tool,
    static_binary,
    static_text,
    template,
    test_audio_content,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_embedded_resource,
    test_error_handling,
    test_image_content,
    test_input_required_result_capabilities,
    test_input_required_result_elicitation,
    test_input_required_result_list_roots,
    test_input_required_result_multi_round,
    test_input_required_result_multiple_inputs,
    test_input_required_result_prompt,
    test_input_required_result_request_state,
    test_input_required_result_sampling,
    test_input_required_result_tampered_state,
    test_logging_tool,
    test_missing_capability,
    test_multiple_content_types,
    test_prompt_with_arguments,
    test_prompt_with_embedded_resource,
    test_prompt_with_image,
    test_reconnection,
    test_sampling,
    test_simple_prompt,
    test_simple_text,
    test_streaming_elicitation,
    test_tool_with_logging,
    test_tool_with_progress,
    watched_resource,
    work_in_region,
    skills=Path(__file__).parents[2] / "functions" / "mcp" / "skills.json",
)
