internal import Synchronization

/// The nodes that the kernel knows, by number, with the number of references that it has to each.
/// Two keys can have the same preferred number, with a probability of 10⁻⁷ among a million nodes.
/// The node that is looked up second then gets the next free number. It keeps it as long as the
/// kernel knows it, but may have another one in the next mount.
final class NodeTable: Sendable {
  private struct Known {
    let node: MountNode
    var references: UInt64
  }

  private let known: Mutex<[UInt64: Known]>
  /// The preferred number of a key, which tests replace.
  private let preferred: @Sendable (NodeKey) -> UInt64

  init(root: MountNode, preferred: @escaping @Sendable (NodeKey) -> UInt64 = { $0.number }) {
    self.preferred = preferred
    known = Mutex([root.number: Known(node: root, references: 1)])
  }

  /// The number of nodes.
  var count: Int { known.withLock { $0.count } }

  /// Returns the node of a number, or nil if the kernel does not know it.
  func node(_ number: UInt64) -> MountNode? { known.withLock { $0[number]?.node } }

  /// Returns the node of a key, which is created if needed, and counts a reference to it.
  func enter(_ key: NodeKey, _ origin: MountNode.Origin, in parent: UInt64) -> MountNode {
    known.withLock { known in
      let number = number(of: key, in: known)
      if let node = known[number]?.node {
        known[number]?.references += 1
        return node
      }
      let node = MountNode(number: number, key: key, origin, in: parent)
      known[number] = Known(node: node, references: 1)
      return node
    }
  }

  /// Returns the number that a key has, or would get now.
  func number(of key: NodeKey) -> UInt64 { known.withLock { number(of: key, in: $0) } }

  private func number(of key: NodeKey, in known: [UInt64: Known]) -> UInt64 {
    var number = preferred(key)
    while let other = known[number], other.node.key != key { number += 1 }
    return number
  }

  /// Removes references. A node without references is removed.
  func forget(_ number: UInt64, references: UInt64) {
    known.withLock { known in
      guard number != NodeKey.rootNumber, let count = known[number]?.references else { return }
      if count > references {
        known[number]?.references = count - references
      } else {
        known[number] = nil
      }
    }
  }
}
