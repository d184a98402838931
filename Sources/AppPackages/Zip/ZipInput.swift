internal import CArchive
internal import SystemIO

/// The input of libarchive, read with SystemIO to include its fault injection.
///
/// The owner keeps it alive as long as the libarchive reader.
@safe final class ZipInput {
  private let zip: ZipFile
  private var position: UInt64 = 0
  /// The bytes last passed to libarchive, which must not move until the next call.
  private let buffer: UnsafeMutableBufferPointer<UInt8>
  private var scratch: [UInt8]
  /// The number of bytes to read next: small after a seek, when only a header may be needed.
  private var wanted = ZipInput.least
  /// The error of a failed call, since libarchive only learns that the call failed.
  private(set) var failure: SystemError?

  private static let least = 4 << 10
  private static let most = 256 << 10

  init(_ zip: ZipFile) {
    self.zip = zip
    unsafe buffer = .allocate(capacity: Self.most)
    unsafe buffer.initialize(repeating: 0)
    scratch = [UInt8](repeating: 0, count: Self.most)
  }

  deinit { unsafe buffer.deallocate() }

  /// Provides the next bytes: sets a pointer valid until the next call and returns the number of
  /// bytes, or -1 on failure.
  fileprivate func read(_ place: UnsafeMutablePointer<UnsafeRawPointer?>?) -> Int {
    do throws(SystemError) {
      let count = try zip.file.read(into: &scratch, from: 0, to: wanted, at: position)
      _ = unsafe buffer.update(fromContentsOf: scratch.prefix(count))
      unsafe place?.pointee = UnsafeRawPointer(buffer.baseAddress)
      position += UInt64(count)
      wanted = min(wanted * 2, Self.most)
      return count
    } catch {
      failure = error
      return -1
    }
  }

  fileprivate func skip(_ count: Int64) -> Int64 {
    let left = Int64(clamping: zip.size) - Int64(clamping: position)
    let passed = max(0, min(count, left))
    position += UInt64(passed)
    wanted = Self.least
    return passed
  }

  fileprivate func seek(_ offset: Int64, _ origin: Int32) -> Int64 {
    let base: Int64 =
      switch origin {
      case 1: Int64(clamping: position)
      case 2: Int64(clamping: zip.size)
      default: 0
      }
    let goal = base.addingReportingOverflow(offset)
    guard !goal.overflow, goal.partialValue >= 0 else { return Int64(ARCHIVE_FATAL) }
    position = UInt64(goal.partialValue)
    wanted = Self.least
    return goal.partialValue
  }

  /// Opens the libarchive reader with this input.
  func open(_ archive: OpaquePointer) -> Int32 {
    let client = unsafe Unmanaged.passUnretained(self).toOpaque()
    unsafe archive_read_set_read_callback(archive, readInput)
    unsafe archive_read_set_skip_callback(archive, skipInput)
    unsafe archive_read_set_seek_callback(archive, seekInput)
    unsafe archive_read_set_callback_data(archive, client)
    return unsafe archive_read_open1(archive)
  }
}

private func input(_ client: UnsafeMutableRawPointer?) -> ZipInput? {
  guard let client = unsafe client else { return nil }
  return unsafe Unmanaged<ZipInput>.fromOpaque(client).takeUnretainedValue()
}

private func readInput(
  _: OpaquePointer?, client: UnsafeMutableRawPointer?,
  place: UnsafeMutablePointer<UnsafeRawPointer?>?
) -> Int {
  unsafe input(client)?.read(place) ?? -1
}

private func skipInput(
  _: OpaquePointer?, client: UnsafeMutableRawPointer?, count: Int64
) -> Int64 {
  unsafe input(client)?.skip(count) ?? 0
}

private func seekInput(
  _: OpaquePointer?, client: UnsafeMutableRawPointer?, offset: Int64, origin: Int32
) -> Int64 {
  unsafe input(client)?.seek(offset, origin) ?? Int64(ARCHIVE_FATAL)
}
