internal import SystemIO

/// A number for each entry of an index: 4 bytes an entry, which can leave memory.
struct EntryNumbers: Sendable {
  private var numbers: [SpillableArray<UInt32>]

  /// Creates zeros.
  init(_ objects: [IndexObject]) {
    numbers = objects.map { SpillableArray(repeating: 0, count: $0.blobs) }
  }

  subscript(entry: PruneIndex.Entry) -> UInt32 {
    get { numbers[Int(entry.object)][Int(entry.number)] }
    set { numbers[Int(entry.object)][Int(entry.number)] = newValue }
  }

  /// Passes the numbers that are not 0.
  func forEachNumber(_ body: (PruneIndex.Entry, UInt32) -> Void) {
    for (object, numbers) in numbers.enumerated() {
      for (entry, number) in numbers.enumerated() where number != 0 {
        body(PruneIndex.Entry(object: UInt32(object), number: UInt32(entry)), number)
      }
    }
  }
}

/// The references of trees and lists to other blobs, by their entries in an index: 8 bytes a
/// reference, which can leave memory. With them a repository is searched several times, and each
/// tree is read once.
struct GrowthGraph: Sendable {
  /// The number of the node of each entry, from 1; 0 if it has none.
  private var numbers: EntryNumbers
  private var nodes = SpillableArray<Node>()
  private var references = SpillableArray<PruneIndex.Entry>()

  /// The references of a tree or a list.
  private struct Node: Sendable, BitwiseCopyable {
    var start = 0
    var count = 0
  }

  /// Creates a graph without references.
  init(_ objects: [IndexObject]) { numbers = EntryNumbers(objects) }

  /// Whether an entry is that of a tree or list that was added.
  func contains(_ entry: PruneIndex.Entry) -> Bool { numbers[entry] != 0 }

  /// Adds a tree or list without references. Returns false if it was added before.
  mutating func insert(_ entry: PruneIndex.Entry) -> Bool {
    guard numbers[entry] == 0 else { return false }
    nodes.append(Node())
    numbers[entry] = UInt32(nodes.count)
    return true
  }

  /// Sets the references of a tree or list that was added.
  mutating func set(_ found: [PruneIndex.Entry], of entry: PruneIndex.Entry) {
    nodes[Int(numbers[entry]) - 1] = Node(start: references.count, count: found.count)
    references.append(contentsOf: found)
  }

  /// Passes the references of a tree or list.
  func forEachReference(of entry: PruneIndex.Entry, _ body: (PruneIndex.Entry) -> Void) {
    let number = Int(numbers[entry])
    guard number > 0 else { return }
    let node = nodes[number - 1]
    for index in node.start..<(node.start + node.count) { body(references[index]) }
  }

  /// Returns the entries that only one of several trees reaches: for each entry the number of the
  /// tree, from 1, or `shared`. Each tree and list is visited at most twice.
  ///
  /// - Parameter roots: the trees; nil for one that no index object names.
  func owners(of roots: [PruneIndex.Entry?], _ objects: [IndexObject]) -> EntryNumbers {
    var owners = EntryNumbers(objects)
    for (number, root) in roots.enumerated() {
      let owner = UInt32(number + 1)
      var open = root.map { [$0] } ?? []
      while let entry = open.popLast() {
        guard Self.assign(entry, for: owner, in: &owners) else { continue }
        forEachReference(of: entry) { below in
          if contains(below) {
            open.append(below)
          } else {
            _ = Self.assign(below, for: owner, in: &owners)
          }
        }
      }
    }
    return owners
  }

  /// The number of an entry that several trees reach.
  static let shared = UInt32.max

  /// Returns whether the entry has another owner than before.
  private static func assign(
    _ entry: PruneIndex.Entry, for owner: UInt32, in owners: inout EntryNumbers
  ) -> Bool {
    let before = owners[entry]
    if before == owner || before == shared { return false }
    owners[entry] = before == 0 ? owner : shared
    return true
  }
}
