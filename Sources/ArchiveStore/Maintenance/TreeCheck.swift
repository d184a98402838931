internal import Codecs
internal import SystemIO

/// Reads each tree that snapshots need, once, and holds what it names against the index.
struct TreeCheck {
  private let reader: RepositoryReader
  private let index: CheckedIndex
  private var seen: Set<TreeReference> = []
  private(set) var entries = 0
  /// Whether everything that was looked at can be restored.
  private(set) var isWhole = true

  var trees: Int { seen.count }

  init(_ reader: RepositoryReader, _ index: CheckedIndex) {
    self.reader = reader
    self.index = index
  }

  /// Looks at a tree and all below it that was not seen before.
  mutating func check(_ root: TreeReference) throws {
    var pending = [(tree: root, depth: 1)]
    while let (tree, depth) = pending.popLast() {
      guard seen.insert(tree).inserted else { continue }
      guard depth <= FormatLimit.depth else {
        isWhole = false
        continue
      }
      _ = index.fault(of: BlobID(kind: .tree, digest: tree.digest), length: nil)
      do {
        try reader.forEachEntry(of: tree) { entry in
          entries += 1
          if case .directory(let below) = entry.node { pending.append((below, depth + 1)) }
          if isWhole, try Self.fault(of: entry, reader, index) != nil { isWhole = false }
        }
      } catch let error as StoreError where error.kind == .damaged {
        isWhole = false
      }
    }
  }

  /// Says why an entry, what is below it aside, cannot be restored whole; nothing when it can.
  static func fault(
    of entry: TreeEntry, _ reader: RepositoryReader, _ index: CheckedIndex
  ) throws -> String? {
    for attribute in entry.attributes {
      if case .blob(let digest, let length) = attribute.value,
        let fault = index.fault(of: BlobID(kind: .data, digest: digest), length: length)
      {
        return "attribute \(attribute.name): \(fault)"
      }
    }
    guard case .file(let content) = entry.node else { return nil }
    var first: String?
    do {
      try reader.forEachPiece(of: content) { _, piece in
        guard first == nil, case .blob(let digest, let length) = piece else { return }
        first = index.fault(of: BlobID(kind: .data, digest: digest), length: length)
      }
    } catch let error as StoreError where error.kind == .damaged {
      first = first ?? "\(error.subject): \(error.reason)"
    }
    return first
  }
}
