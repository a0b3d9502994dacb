"""Whatever is asked, edited, made again and chosen in whatever order: the tree stays whole."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.chat import conversations, store
from sidecar.chat.branches import Branches
from sidecar.chat.conversations import Question, Reserved
from sidecar.kernel.database import Transaction
from sidecar.kernel.migrations import migration_scripts

TALK = "conversation_1"


@contextmanager
def tables() -> Iterator[Transaction]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        for _, script in migration_scripts():
            connection.executescript(script)
        tx = Transaction(connection)
        store.insert_conversation(tx, TALK, None, "2026-01-01T00:00:00.000Z")
        yield tx


class Talk:
    """A conversation, with what must hold after each step."""

    def __init__(self, tx: Transaction) -> None:
        self.tx = tx
        self.open: list[Reserved] = []
        self.known = 0

    @property
    def nodes(self) -> list[store.Node]:
        return store.nodes(self.tx, TALK)

    def path(self) -> list[str]:
        leaf, _ = store.active_branch(self.tx, TALK)
        return list(Branches(self.nodes).path(leaf))

    def begin(self, retry: str | None) -> None:
        asked = Question(TALK, "why?", (), None, retry, "p", "m")
        before = self.path()
        reserved = conversations._begin(self.tx, asked)
        self.open.append(reserved)
        history = [message.message_id for message in reserved.history]
        branches = Branches(self.nodes)
        if retry is None:
            assert history == before
        elif branches.node(retry).role == "assistant":
            assert reserved.question.message_id == branches.node(retry).parent
            assert self.path() == before
        else:
            assert reserved.question.parent_message_id == branches.node(retry).parent
        assert [*history, reserved.question.message_id] == list(
            branches.path(reserved.question.message_id)
        )

    def finish(self, index: int) -> None:
        reserved = self.open.pop(index)
        before = self.path()
        _, response = store.active_branch(self.tx, TALK)
        assert conversations._finish(self.tx, reserved.draft, None)
        after = self.path()
        if response == reserved.draft.message_id:
            assert after[-1] == reserved.draft.message_id
        elif after != before:
            assert response is None and after == [*before, reserved.draft.message_id]

    def select(self, message_id: str) -> None:
        before = self.path()
        branches = Branches(self.nodes)
        conversations._select(self.tx, TALK, message_id)
        after = self.path()
        assert message_id in after and (after == before or message_id not in before)
        below = [node for node in self.nodes if message_id in branches.path(node.message_id)]
        if message_id not in before:
            assert after[-1] == max(below, key=lambda node: node.position).message_id

    def check(self) -> None:
        nodes = self.nodes
        branches = Branches(nodes)
        assert len(nodes) >= self.known, "nothing is ever lost"
        self.known = len(nodes)
        positions = [node.position for node in nodes]
        assert positions == sorted(set(positions))
        for node in nodes:
            assert node.parent is None or branches.node(node.parent).position < node.position
            versions = branches.versions(node.message_id)
            assert node.message_id in versions
            assert [branches.node(one).position for one in versions] == sorted(
                branches.node(one).position for one in versions
            )
            assert {branches.node(one).parent for one in versions} == {node.parent}
        path = self.path()
        assert len(path) == len(set(path))
        assert not path or branches.node(path[0]).parent is None


STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "retry", "finish", "select"]), st.integers(0, 10_000)),
    max_size=30,
)


@pytest.mark.proves("chat.versions.reserved-response", "chat.versions.late-reply")
@given(steps=STEPS)
@settings(max_examples=150, deadline=None)
def test_any_order_of_steps(steps: list[tuple[str, int]]) -> None:
    with tables() as tx:
        talk = Talk(tx)
        for name, number in steps:
            nodes = talk.nodes
            if name == "ask":
                talk.begin(None)
            elif name == "finish" and talk.open:
                talk.finish(number % len(talk.open))
            elif name == "retry" and nodes:
                talk.begin(nodes[number % len(nodes)].message_id)
            elif name == "select" and nodes:
                talk.select(nodes[number % len(nodes)].message_id)
            talk.check()
