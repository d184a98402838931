/// A full frame before compression: complete tar members with the locations of their blobs.
struct PlainFrame: Sendable {
  var bytes: [UInt8]
  var blobs: [PackFrame.Blob]
  /// The number of members.
  var members: Int

  /// Appends the members of another frame.
  mutating func append(_ other: PlainFrame) {
    let start = bytes.count
    bytes.append(contentsOf: other.bytes)
    members += other.members
    blobs += other.blobs.map {
      PackFrame.Blob(id: $0.id, offset: start + $0.offset, length: $0.length)
    }
  }
}

/// A finished frame: complete tar members, compressed and verified, with the locations of their
/// blobs.
struct PackFrame: Sendable {
  let stored: [UInt8]
  let plain: Int
  let blobs: [Blob]

  /// A blob's location in the decoded bytes of a frame or of a member.
  struct Blob: Hashable, Sendable {
    let id: BlobID
    let offset: Int
    let length: Int
  }
}
