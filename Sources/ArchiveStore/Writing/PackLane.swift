internal import Codecs
internal import SystemIO

/// The way of one sort of blobs into packs: the frame that is being gathered and the open pack.
/// File contents have one lane, trees and lists another.
struct PackLane: ~Copyable {
  private var builder: FrameBuilder
  private var pack: PackWriter?

  init(frameLimit: Int) throws(StoreError) { builder = try FrameBuilder(limit: frameLimit) }

  /// Adds a member; the frame that it closes goes into the pack.
  mutating func append(
    _ member: TarMember, bytes: Span<UInt8>, blobs: [PackFrame.Blob], into packs: inout RunPacks
  ) throws(StoreError) {
    if let frame = try builder.append(member, bytes: bytes, blobs: blobs) {
      try append(frame, into: &packs)
    }
  }

  /// Closes the frame and the pack.
  mutating func finish(into packs: inout RunPacks) throws(StoreError) {
    if let frame = try builder.finish() { try append(frame, into: &packs) }
    try closePack(into: &packs)
  }

  func discard() { pack?.discard() }

  private mutating func append(
    _ frame: PackFrame, into packs: inout RunPacks
  ) throws(StoreError) {
    if let pack, pack.isFull(before: frame.blobs.count) { try closePack(into: &packs) }
    let pack: PackWriter
    if let open = self.pack { pack = open } else { pack = try packs.open() }
    self.pack = pack
    let number = try pack.append(frame)
    for blob in frame.blobs {
      packs.blobs.place(
        blob.id, pack: pack.number, frame: number, offset: UInt32(blob.offset))
    }
  }

  private mutating func closePack(into packs: inout RunPacks) throws(StoreError) {
    guard let pack else { return }
    self.pack = nil
    do {
      try packs.close(pack)
    } catch {
      pack.discard()
      throw error
    }
  }
}
