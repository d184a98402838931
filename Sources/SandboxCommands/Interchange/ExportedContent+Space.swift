internal import ArchiveStore
internal import Codecs
internal import Restore
internal import SystemIO

extension ExportedContent {
  /// Refuses to write the content to a volume that certainly has no room for it, before any of it
  /// is written, and warns if it may have none, as a restore does.
  ///
  /// The output exists already: the remains of a killed export are removed when it is created, and
  /// may occupy the missing room.
  ///
  /// - Parameters:
  ///   - directory: The directory that is written into, or the one to write.
  ///   - isCompressed: Whether the format compresses the content, so that its size is not known.
  ///   - holds: Whether the format holds the entry with a logical path.
  func requireRoom(
    in directory: ByteString, isCompressed: Bool,
    where holds: (ByteString) -> Bool = { _ in true }, _ console: Console
  ) throws {
    // The total of the snapshot is known without reading its trees.
    let most = Self.needs(stored.snapshot.totals.bytes, in: directory)
    guard most.all.contains(where: { $0.verdict != .fits }), let bytes = try storedBytes(holds)
    else { return }
    let needs = Self.needs(bytes, in: directory)
    guard isCompressed else {
      try needs.require(
        "export to",
        hint: "free space on the volume, choose another one, or export a part with 'SNAP:PATH'")
      return console.warn(ofPerhapsTooMuch: needs.all)
    }
    for need in needs.all {
      guard let shortage = need.shortage else { continue }
      console.warning(
        "there may not be enough space in '\(need.directory)': uncompressed, \(shortage)")
    }
  }

  private static func needs(_ bytes: UInt64, in directory: ByteString) -> VolumeNeeds {
    var needs = VolumeNeeds(of: [], from: nil)
    needs.add(at: directory) { _ in (bytes, 1) }
    return needs
  }

  /// Returns the size of the content without holes, each hard-linked file once; nil if the lists of
  /// its pieces are too long or cannot be read.
  private func storedBytes(_ holds: (ByteString) -> Bool) throws -> UInt64? {
    var sum = StoredSum(reader: reader)
    do {
      switch source {
      case .single(let entry): if holds(top) { try sum.add(entry) }
      case .directory(let tree, _):
        try reader.walkPastDamage(tree) { path, finding in
          if case .entry(let entry) = finding, holds(top.appending(path)) { try sum.add(entry) }
          return .enter
        }
      }
    } catch is StoredSum.TooManyPieces {
      return nil
    } catch let error as StoreError where error.kind == .damaged {
      return nil
    }
    return sum.bytes
  }

  /// The sum of the sizes of files without holes.
  private struct StoredSum {
    /// Thrown if there are more pieces than are read in advance.
    struct TooManyPieces: Error {}

    let reader: RepositoryReader
    private(set) var bytes: UInt64 = 0
    /// The number of pieces that may still be read: about a second of work.
    private var left = 1 << 20
    private var groups: Set<ByteString> = []

    init(reader: RepositoryReader) { self.reader = reader }

    mutating func add(_ entry: TreeEntry) throws {
      guard case .file(let content) = entry.node,
        entry.linkGroup.map({ groups.insert($0).inserted }) ?? true
      else { return }
      try reader.forEachPiece(of: content) { _, piece in
        left -= 1
        if left < 0 { throw TooManyPieces() }
        if case .blob(_, let length) = piece { bytes.addClamping(length) }
      }
    }
  }
}
