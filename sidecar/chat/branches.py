"""A conversation's messages as a tree: paths, versions, and which way a selection leads."""

from collections.abc import Iterable, Sequence

from sidecar.chat.store import Node


class Branches:
    """The tree of one conversation."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        """*nodes* are in the order of their beginning."""
        self._nodes = {node.message_id: node for node in nodes}
        self._children: dict[str | None, list[Node]] = {}
        for node in self._nodes.values():
            self._children.setdefault(node.parent, []).append(node)

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._nodes

    def node(self, message_id: str) -> Node:
        """Return a message's place."""
        return self._nodes[message_id]

    def path(self, leaf: str | None) -> Sequence[str]:
        """Return the messages from the first to *leaf*."""
        found: list[str] = []
        while leaf is not None and leaf in self._nodes:
            found.append(leaf)
            leaf = self._nodes[leaf].parent
        return found[::-1]

    def versions(self, message_id: str) -> list[str]:
        """Return the messages that share a message's parent and role, oldest first."""
        node = self._nodes[message_id]
        siblings = self._children[node.parent]
        return [sibling.message_id for sibling in siblings if sibling.role == node.role]

    def newest_end(self, message_id: str) -> str:
        """Return the message that was begun last among those below *message_id*, or itself.

        Nothing can be below that one, so it ends a path.
        """
        newest = self._nodes[message_id]
        open_nodes = [newest]
        while open_nodes:
            node = open_nodes.pop()
            newest = max(newest, node, key=lambda found: found.position)
            open_nodes += self._children.get(node.message_id, [])
        return newest.message_id
