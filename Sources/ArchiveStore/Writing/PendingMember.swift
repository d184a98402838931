internal import SystemIO

/// The successive new blobs of a file that are in no member yet.
struct PendingMember {
  private struct Run {
    let id: BlobID
    let start: Int
    let length: Int
    /// First byte in the file.
    let offset: UInt64
    /// Whether the same bytes came before, in a file that may still become one member.
    let isRepeat: Bool
  }

  private(set) var bytes: [UInt8] = []
  private var runs: [Run] = []
  private var ids: Set<BlobID> = []

  func contains(_ id: BlobID) -> Bool { runs.count > 1 ? ids.contains(id) : runs.first?.id == id }

  mutating func append(_ id: BlobID, _ more: Span<UInt8>, at offset: UInt64) {
    let isRepeat = contains(id)
    if runs.count == 1 { ids.insert(runs[0].id) }
    if !runs.isEmpty { ids.insert(id) }
    runs.append(
      Run(id: id, start: bytes.count, length: more.count, offset: offset, isRepeat: isRepeat))
    bytes.append(more)
  }

  mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    runs.removeAll(keepingCapacity: true)
    if !ids.isEmpty { ids.removeAll(keepingCapacity: true) }
  }

  /// Gives all as one member; nothing where nothing is pending.
  func giveWhole(
    _ give: (Span<UInt8>, [PackFrame.Blob]) throws(StoreError) -> Void
  ) throws(StoreError) {
    guard !runs.isEmpty else { return }
    let blobs = runs.lazy.filter { !$0.isRepeat }.map {
      PackFrame.Blob(id: $0.id, offset: $0.start, length: $0.length)
    }
    try give(bytes.span, Array(blobs))
  }

  /// Gives parts of blobs that follow one another in the file, each of at most `limit` bytes.
  func giveParts(
    limit: Int, _ give: (UInt64, Span<UInt8>, [PackFrame.Blob]) throws(StoreError) -> Void
  ) throws(StoreError) {
    var part: [Run] = []
    for run in runs {
      let size = part.reduce(0) { $0 + $1.length }
      if run.isRepeat || size + run.length > limit {
        try self.give(part, give)
        part = []
      }
      if !run.isRepeat { part.append(run) }
    }
    try self.give(part, give)
  }

  private func give(
    _ part: [Run], _ give: (UInt64, Span<UInt8>, [PackFrame.Blob]) throws(StoreError) -> Void
  ) throws(StoreError) {
    guard let first = part.first, let last = part.last else { return }
    let blobs = part.map {
      PackFrame.Blob(id: $0.id, offset: $0.start - first.start, length: $0.length)
    }
    try give(
      first.offset, bytes.span.extracting(first.start..<(last.start + last.length)), blobs)
  }
}
