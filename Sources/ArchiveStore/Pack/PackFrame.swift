/// A frame that is full: whole tar members with the places of their blobs, not yet compressed.
struct PlainFrame: Sendable {
  var bytes: [UInt8]
  var blobs: [PackFrame.Blob]
  /// How many members there are.
  var members: Int

  /// Takes over the members of another frame, which come behind its own.
  mutating func append(_ other: PlainFrame) {
    let start = bytes.count
    bytes.append(contentsOf: other.bytes)
    members += other.members
    blobs += other.blobs.map {
      PackFrame.Blob(id: $0.id, offset: start + $0.offset, length: $0.length)
    }
  }
}

/// A finished frame: whole tar members, compressed and proved, with the places of their blobs.
struct PackFrame: Sendable {
  let stored: [UInt8]
  let plain: Int
  let blobs: [Blob]

  /// A blob within plain bytes: of a frame, or of a member that is to come into one.
  struct Blob: Hashable, Sendable {
    let id: BlobID
    let offset: Int
    let length: Int
  }
}
