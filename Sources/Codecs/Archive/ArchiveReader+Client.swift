internal import CArchive
internal import Glibc

extension ArchiveReader {
  /// The callbacks' view of the input. The reader keeps it alive as long as libarchive's reader.
  @safe final class Client {
    private let input: any ArchiveInput
    private var scratch = [UInt8](repeating: 0, count: Client.size)
    /// The bytes passed to libarchive last, which must not move until the next call.
    private let buffer: UnsafeMutableBufferPointer<UInt8>
    private var position: UInt64 = 0
    /// The bytes read so far, while another reader may begin again; nil if none will.
    private var kept: [UInt8]?
    /// The bytes that come before those of the input.
    private var repeated: ArraySlice<UInt8> = []
    private var hasFailed = false
    /// The flags of a zip archive's names to clear.
    private let nameFlags: ZipNameFlags?

    private static let size = 256 << 10
    /// The maximum number of bytes to keep. The first header of a tar is at most some blocks of a
    /// decompressor behind the start.
    private static let keptLimit = 64 << 20

    /// - Parameter isRepeatable: whether a second reader may begin again.
    init(_ input: any ArchiveInput, isRepeatable: Bool) {
      self.input = input
      nameFlags = ZipNameFlags(in: input)
      kept = isRepeatable ? [] : nil
      unsafe buffer = .allocate(capacity: Self.size)
      unsafe buffer.initialize(repeating: 0)
    }

    deinit { unsafe buffer.deallocate() }

    /// Whether libarchive gets the names of a zip archive without their flags, and does not convert them.
    var keepsZipNames: Bool { nameFlags != nil }

    func open(_ archive: OpaquePointer) -> Int32 {
      unsafe archive_read_set_read_callback(archive, readClient)
      if input.size != nil {
        unsafe archive_read_set_skip_callback(archive, skipClient)
        unsafe archive_read_set_seek_callback(archive, seekClient)
      }
      unsafe archive_read_set_callback_data(archive, Unmanaged.passUnretained(self).toOpaque())
      return unsafe archive_read_open1(archive)
    }

    /// Lets the next reader begin again. Returns false if the start was not kept.
    func beginAgain() -> Bool {
      guard let bytes = kept.take() else { return false }
      (repeated, position) = (bytes[...], 0)
      return true
    }

    /// Keeps nothing: this reader is the last one.
    func endRepeatable() { kept = nil }

    func read(_ pointer: UnsafeMutablePointer<UnsafeRawPointer?>?) -> Int {
      let count = repeated.isEmpty ? readInput() : readAgain()
      guard count > 0 else { return count }
      unsafe pointer?.pointee = UnsafeRawPointer(buffer.baseAddress)
      position += UInt64(count)
      return count
    }

    private func readInput() -> Int {
      if hasFailed { return -1 }
      let count = input.read(into: &scratch)
      hasFailed = count < 0
      guard count > 0 else { return count }
      nameFlags?.clear(in: &scratch, count: count, at: position)
      _ = unsafe buffer.update(fromContentsOf: scratch.prefix(count))
      if let size = kept?.count {
        if size + count > Self.keptLimit {
          kept = nil
        } else {
          kept?.append(contentsOf: scratch.prefix(count))
        }
      }
      return count
    }

    private func readAgain() -> Int {
      let portion = repeated.prefix(Self.size)
      _ = unsafe buffer.update(fromContentsOf: portion)
      repeated.removeFirst(portion.count)
      return portion.count
    }

    func skip(_ count: Int64) -> Int64 {
      // The kept bytes must have no gaps: libarchive reads the skipped ones instead.
      guard kept == nil else { return 0 }
      let left = (input.size ?? 0) - min(input.size ?? 0, position)
      let skipped = min(UInt64(max(0, count)), left)
      move(to: position + skipped)
      return Int64(skipped)
    }

    private func move(to offset: UInt64) {
      (position, repeated) = (offset, [])
      input.seek(to: offset)
    }

    func seek(_ offset: Int64, _ origin: Int32) -> Int64 {
      // The reader of tar never does.
      guard kept == nil else { return Int64(ARCHIVE_FATAL) }
      let base: UInt64 =
        switch origin {
        case SEEK_CUR: position
        case SEEK_END: input.size ?? 0
        default: 0
        }
      let goal = Int64(clamping: base).addingReportingOverflow(offset)
      guard !goal.overflow, goal.partialValue >= 0 else { return Int64(ARCHIVE_FATAL) }
      move(to: UInt64(goal.partialValue))
      return goal.partialValue
    }
  }
}

private func client(_ pointer: UnsafeMutableRawPointer?) -> ArchiveReader.Client? {
  guard let pointer = unsafe pointer else { return nil }
  return unsafe Unmanaged<ArchiveReader.Client>.fromOpaque(pointer).takeUnretainedValue()
}

private func readClient(
  _: OpaquePointer?, data: UnsafeMutableRawPointer?,
  pointer: UnsafeMutablePointer<UnsafeRawPointer?>?
) -> Int {
  unsafe client(data)?.read(pointer) ?? -1
}

private func skipClient(
  _: OpaquePointer?, data: UnsafeMutableRawPointer?, count: Int64
) -> Int64 {
  unsafe client(data)?.skip(count) ?? 0
}

private func seekClient(
  _: OpaquePointer?, data: UnsafeMutableRawPointer?, offset: Int64, origin: Int32
) -> Int64 {
  unsafe client(data)?.seek(offset, origin) ?? Int64(ARCHIVE_FATAL)
}
