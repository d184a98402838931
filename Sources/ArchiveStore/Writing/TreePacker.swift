internal import Codecs
internal import Synchronization
internal import SystemIO

/// The packer of trees and lists into packs of their own, shared by all threads. They are small and
/// few, so one frame is collected and compressed under one lock.
final class TreePacker: Sendable {
  let packs: DataPacker
  private let frames: Mutex<Frames>

  private struct Frames: ~Copyable {
    var builder: FrameBuilder
    var encoder: FrameEncoder
  }

  init(_ packs: DataPacker) throws(StoreError) {
    self.packs = packs
    let builder = try FrameBuilder(limit: FrameBuilder.treeLimit)
    let encoder = try FrameEncoder()
    frames = Mutex(Frames(builder: builder, encoder: encoder))
  }

  /// Adds a member. A frame that this closes is appended to the pack.
  func append(
    _ member: TarMember, bytes: [UInt8], blob: PackFrame.Blob
  ) throws(StoreError) {
    try frames.withLock { frames throws(StoreError) in
      if let full = try frames.builder.append(member, bytes: bytes.span, blobs: [blob]) {
        try packs.append(try frames.encoder.encode(full))
      }
    }
  }

  /// Closes the open frame.
  func flush() throws(StoreError) {
    try frames.withLock { frames throws(StoreError) in
      if let last = frames.builder.finish() { try packs.append(try frames.encoder.encode(last)) }
    }
  }
}
