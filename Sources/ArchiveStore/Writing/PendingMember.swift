internal import SystemIO

/// The successive new blobs of a file that are in no member yet, as ranges of the caller's bytes.
struct PendingMember {
  private struct Run {
    let id: BlobID
    var start: Int
    let length: Int
    /// The offset of the first byte in the file.
    let offset: UInt64
    /// Whether the same bytes are already stored or occur earlier in the file, which may still
    /// become one member.
    let isRepeat: Bool

    var end: Int { start + length }
  }

  private var runs: [Run] = []
  private var ids: Set<BlobID> = []

  func contains(_ id: BlobID) -> Bool { runs.count > 1 ? ids.contains(id) : runs.first?.id == id }

  /// Adds the blob at `place` in the bytes. With `isKnown` the blob is already stored, and
  /// separates parts.
  mutating func append(_ id: BlobID, _ place: Range<Int>, at offset: UInt64, isKnown: Bool = false)
  {
    let isRepeat = isKnown || contains(id)
    if runs.count == 1 { ids.insert(runs[0].id) }
    if !runs.isEmpty { ids.insert(id) }
    runs.append(
      Run(
        id: id, start: place.lowerBound, length: place.count, offset: offset, isRepeat: isRepeat))
  }

  /// The position of the first blob in the caller's bytes, or nil if there is none.
  var start: Int? { runs.first?.start }

  /// The number of bytes from the start of the first blob to the end of the last.
  var length: Int { (runs.last?.end ?? 0) - (runs.first?.start ?? 0) }

  /// Adjusts the ranges after the caller's bytes moved to the front by `distance`.
  mutating func move(by distance: Int) {
    for index in runs.indices { runs[index].start -= distance }
  }

  mutating func removeAll() {
    runs.removeAll(keepingCapacity: true)
    if !ids.isEmpty { ids.removeAll(keepingCapacity: true) }
  }

  /// Passes all blobs as one member. Without pending blobs it does nothing.
  func emitWhole(
    of bytes: Span<UInt8>, _ give: (Span<UInt8>, [PackFrame.Blob]) throws(StoreError) -> Void
  ) throws(StoreError) {
    guard let first = runs.first, let last = runs.last else { return }
    let blobs = runs.lazy.filter { !$0.isRepeat }.map {
      PackFrame.Blob(id: $0.id, offset: $0.start - first.start, length: $0.length)
    }
    try give(bytes.extracting(first.start..<last.end), Array(blobs))
  }

  /// Passes parts of consecutive blobs, each of at most `limit` bytes.
  func emitParts(
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
