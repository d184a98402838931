internal import SystemIO

/// Where the successive new blobs of a file lie that are in no member yet, in bytes that the caller
/// has.
struct PendingMember {
  private struct Run {
    let id: BlobID
    var start: Int
    let length: Int
    /// First byte in the file.
    let offset: UInt64
    /// Whether the same bytes came before, in a file that may still become one member.
    let isRepeat: Bool

    var end: Int { start + length }
  }

  private var runs: [Run] = []
  private var ids: Set<BlobID> = []

  func contains(_ id: BlobID) -> Bool { runs.count > 1 ? ids.contains(id) : runs.first?.id == id }

  /// Adds the blob at `place` in the bytes; with `isKnown` one that is stored already, before and
  /// behind which parts end.
  mutating func append(_ id: BlobID, _ place: Range<Int>, at offset: UInt64, isKnown: Bool = false)
  {
    let isRepeat = isKnown || contains(id)
    if runs.count == 1 { ids.insert(runs[0].id) }
    if !runs.isEmpty { ids.insert(id) }
    runs.append(
      Run(
        id: id, start: place.lowerBound, length: place.count, offset: offset, isRepeat: isRepeat))
  }

  /// Where in the caller's bytes the first blob lies.
  var start: Int? { runs.first?.start }

  /// How many bytes there are from the first blob's begin to the last one's end.
  var length: Int { (runs.last?.end ?? 0) - (runs.first?.start ?? 0) }

  /// Says that the caller's bytes have moved to the front by `distance`.
  mutating func move(by distance: Int) {
    for index in runs.indices { runs[index].start -= distance }
  }

  mutating func removeAll() {
    runs.removeAll(keepingCapacity: true)
    if !ids.isEmpty { ids.removeAll(keepingCapacity: true) }
  }

  /// Gives all as one member; nothing where nothing is pending.
  func giveWhole(
    of bytes: Span<UInt8>, _ give: (Span<UInt8>, [PackFrame.Blob]) throws(StoreError) -> Void
  ) throws(StoreError) {
    guard let first = runs.first, let last = runs.last else { return }
    let blobs = runs.lazy.filter { !$0.isRepeat }.map {
      PackFrame.Blob(id: $0.id, offset: $0.start - first.start, length: $0.length)
    }
    try give(bytes.extracting(first.start..<last.end), Array(blobs))
  }

  /// Gives parts of blobs that follow one another in the file, each of at most `limit` bytes.
  func giveParts(
    of bytes: Span<UInt8>, limit: Int,
    _ give: (UInt64, Span<UInt8>, [PackFrame.Blob]) throws(StoreError) -> Void
  ) throws(StoreError) {
    var part: [Run] = []
    for run in runs {
      let size = part.reduce(0) { $0 + $1.length }
      if run.isRepeat || size + run.length > limit {
        try self.give(part, of: bytes, give)
        part = []
      }
      if !run.isRepeat { part.append(run) }
    }
    try self.give(part, of: bytes, give)
  }

  private func give(
    _ part: [Run], of bytes: Span<UInt8>,
    _ give: (UInt64, Span<UInt8>, [PackFrame.Blob]) throws(StoreError) -> Void
  ) throws(StoreError) {
    guard let first = part.first, let last = part.last else { return }
    let blobs = part.map {
      PackFrame.Blob(id: $0.id, offset: $0.start - first.start, length: $0.length)
    }
    try give(
      first.offset, bytes.extracting(first.start..<last.end), blobs)
  }
}
