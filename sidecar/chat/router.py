"""Paths of the chat."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from sidecar.chat.schemas import (
    ChatRequest,
    Conversation,
    ConversationCreate,
    ConversationList,
    ConversationPatch,
    MessageList,
)
from sidecar.chat.service import ChatService
from sidecar.kernel.errors import ProjectError, error_responses
from sidecar.kernel.http.sse import model_stream
from sidecar.kernel.paging import PageQuery

MultipartChat = Callable[[Request], Awaitable[Response]]
"""Answers ``POST /api/chat`` with a ``multipart/form-data`` body."""

STREAM_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The events of the answer, up to one `Done`.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


def _media_type(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"content-type":
            return str(value.decode("latin-1").partition(";")[0].strip().lower())
    return ""


class _JsonRoute(APIRoute):
    """Takes requests with a JSON body and leaves all others to the next route of the path."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by media type too."""
        match, child = super().matches(scope)
        if match is Match.FULL and scope.get("method") == "POST":
            media_type = _media_type(scope)
            if media_type != "application/json" and not media_type.endswith("+json"):
                return Match.NONE, {}
        return match, child


def build_router(service: ChatService, multipart: MultipartChat | None = None) -> APIRouter:
    """Return the routes; *multipart* answers what is asked as a form, where there is such a service."""
    router = APIRouter(tags=["chat"])
    _add_chat(router, service)
    _add_other_media_types(router, multipart)
    _add_conversations(router, service)
    _add_messages(router, service)
    return router


def _add_chat(router: APIRouter, service: ChatService) -> None:
    async def chat(request: ChatRequest) -> Response:
        """Ask a model; the answer comes as server-sent events.

        Each frame's `data` is `{event, sequence, data, timestamp}`. Events: `TextDelta` and
        `ThinkingDelta` `{text}`; `ToolCallStart`, `ToolCallDelta`, `ToolCallEnd` (sent when the tool has
        run, with `status` `completed` or `failed`); `Citation`, a source that the model was given;
        `ContextStatus` `{kind, message, attachment_id, current, total, truncated}`; `Usage`, the tokens of
        all calls of the model together; `Error`; and once, at the end, `Done` with `status`
        `completed`, `failed` or `cancelled`, `finish_reason`, and for a stored conversation
        `conversation_id`, `message_id` and `user_message_id`.

        With `use_rag` a model that can call tools searches the notes while it answers; `filters` hold
        for each search. Closing the request cancels the answer; what came before is kept. The stream
        can't be resumed.
        """
        turn = await service.open(request)
        return model_stream(turn.events())

    router.add_api_route(
        "/api/chat",
        chat,
        methods=["POST"],
        name="chat",
        summary="Ask a model",
        response_class=Response,
        responses=STREAM_RESPONSES
        | error_responses(
            "RESOURCE_NOT_FOUND",
            "ATTACHMENT_NOT_FOUND",
            "VAULT_NOT_OPEN",
            "PROVIDER_DISABLED",
            "MODEL_CAPABILITY_MISMATCH",
            "UNSUPPORTED_MEDIA_TYPE",
            "CAPABILITY_NOT_AVAILABLE",
        ),
        route_class_override=_JsonRoute,
    )


def _add_other_media_types(router: APIRouter, multipart: MultipartChat | None) -> None:
    @router.post("/api/chat", include_in_schema=False)
    async def chat_in_another_form(request: Request) -> Response:
        if _media_type(request.scope) != "multipart/form-data":
            raise ProjectError("UNSUPPORTED_MEDIA_TYPE")
        if multipart is None:
            raise ProjectError("CAPABILITY_NOT_AVAILABLE")
        return await multipart(request)


def _add_conversations(router: APIRouter, service: ChatService) -> None:
    @router.get("/api/chat/conversations", summary="List conversations")
    async def list_conversations(query: Annotated[PageQuery, Query()]) -> ConversationList:
        """All conversations, most recently used first, those of the workspace panel included."""
        return await service.conversations.list(query)

    @router.post("/api/chat/conversations", status_code=201, summary="Begin a conversation")
    async def create_conversation(request: ConversationCreate) -> Conversation:
        """Make an empty conversation; its first question gives it a title if none is sent."""
        return await service.conversations.create(request)

    @router.get(
        "/api/chat/conversations/{conversation_id}",
        summary="Get a conversation",
        responses=error_responses("RESOURCE_NOT_FOUND"),
    )
    async def get_conversation(conversation_id: str) -> Conversation:
        """The conversation without its messages."""
        return await service.conversations.get(conversation_id)

    @router.patch(
        "/api/chat/conversations/{conversation_id}",
        summary="Rename a conversation",
        responses=error_responses("RESOURCE_NOT_FOUND"),
    )
    async def rename_conversation(conversation_id: str, request: ConversationPatch) -> Conversation:
        """Give it another title. Its place in the list stays."""
        return await service.conversations.rename(conversation_id, request)

    @router.delete(
        "/api/chat/conversations/{conversation_id}",
        status_code=204,
        summary="Delete a conversation",
        responses=error_responses("RESOURCE_NOT_FOUND"),
    )
    async def delete_conversation(conversation_id: str) -> Response:
        """Delete it with all versions of its messages, and end a reply that is being generated.

        Notes and attachments stay.
        """
        await service.delete_conversation(conversation_id)
        return Response(status_code=204)


def _add_messages(router: APIRouter, service: ChatService) -> None:
    @router.get(
        "/api/chat/conversations/{conversation_id}/messages",
        summary="Read a conversation",
        responses=error_responses("RESOURCE_NOT_FOUND"),
    )
    async def list_messages(conversation_id: str) -> MessageList:
        """The whole active branch, oldest first; `versions` names the alternatives of each message.

        A reply that is being generated is not among it before it has ended.
        """
        return await service.conversations.messages(conversation_id)

    @router.post(
        "/api/chat/conversations/{conversation_id}/messages/{message_id}/select",
        summary="Choose a version",
        responses=error_responses("RESOURCE_NOT_FOUND"),
    )
    async def select_message(conversation_id: str, message_id: str) -> MessageList:
        """Make the branch of a version the active one, down to what was begun last below it.

        Returns that branch. A reply that is being generated elsewhere becomes a version and doesn't
        take over.
        """
        return await service.conversations.select(conversation_id, message_id)
