internal import Codecs
internal import SystemIO

/// A pack that is open: frames come to its end one by one.
///
/// Not for two threads at once. It becomes an object only when it is closed.
final class PackWriter {
  /// A pack closes at about so many stored bytes: one file and one request for many blobs, and
  /// little to write again when prune rewrites it.
  static let target = 64 << 20

  /// The pack's place in this run's index.
  let number: Int
  private let storage: any Storage
  private let lease: Lease
  private let writer: any ObjectWriter
  private var hash = Blake2b()
  private var frames: [FramePlace] = []
  private var contents = PackContents()
  private(set) var size: UInt64 = 0

  init(number: Int, storage: any Storage, lease: Lease) throws(StoreError) {
    self.number = number
    self.storage = storage
    self.lease = lease
    writer = try lease.explained { () throws(StoreError) in
      try storage.startObject(in: lease.path)
    }
  }

  /// Whether a frame with so many blobs belongs into the next pack. One frame is kept for the
  /// contents.
  func isFull(before blobs: Int) -> Bool {
    size >= Self.target || frames.count + 1 >= FormatLimit.framesPerPack
      || contents.records.count + blobs > FormatLimit.blobsPerPack
  }

  /// Appends a frame and gives its number.
  func append(_ frame: PackFrame) throws(StoreError) -> Int {
    let number = frames.count
    for blob in frame.blobs {
      contents.records.append(
        BlobRecord(
          id: blob.id, frame: UInt16(number), offset: UInt32(blob.offset),
          length: UInt32(blob.length)))
    }
    frames.append(
      FramePlace(offset: size, stored: UInt32(frame.stored.count), plain: UInt32(frame.plain)))
    try append(frame.stored)
    return number
  }

  private func append(_ bytes: [UInt8]) throws(StoreError) {
    try lease.keepAlive()
    try writer.append(bytes)
    hash.update(bytes)
    size += UInt64(bytes.count)
  }

  /// Writes contents and seek table and makes the pack durable under its name.
  func close() throws(StoreError) -> IndexBuilder.Pack {
    var builder = try FrameBuilder(limit: FormatLimit.frame)
    let table = contents.encode()
    _ = try builder.append(
      TarMember(path: Array(PackContents.memberName.bytes), size: table.count),
      bytes: table.span, blobs: [])
    if let frame = try builder.finish(withEnd: true) { _ = try append(frame) }
    let places = frames.map {
      SeekTable.Frame(storedSize: $0.stored, contentSize: $0.plain)
    }
    try append(SeekTable(frames: places).encoded())
    let id = hash.finish()
    try lease.explained { () throws(StoreError) in
      try writer.commit(as: RepositoryLayout.pack(id), digest: id)
    }
    return IndexBuilder.Pack(id: id, size: size, frames: frames)
  }

  func discard() { writer.discard() }
}
