internal import CArchive
internal import SandboxModel
internal import SystemIO

/// Extracts the entries of a zip archive in sequence with libarchive.
///
/// libarchive reads the directory itself; for each entry, its view is compared with the checked
/// `ZipDirectory`. It checks an entry's length and checksum at the end of the entry.
@safe final class ZipStream {
  private let archive: OpaquePointer
  private let input: Input
  private let zip: ZipFile
  /// The number of entries visited.
  private var position = 0
  private var entry: OpaquePointer?
  /// The unread bytes of the entry.
  private(set) var remaining: UInt64 = 0
  private var isChecked = true

  init(_ zip: ZipFile) throws(ModelError) {
    guard let archive = unsafe archive_read_new() else {
      throw zip.fault.damaged("no memory to read it", hint: "free some memory")
    }
    unsafe self.archive = archive
    self.zip = zip
    input = Input(zip)
    try check(unsafe archive_read_support_format_zip_seekable(archive))
    // No charset is set, so libarchive leaves names as bytes, except those marked as UTF-8, which
    // it converts. Names are therefore taken from the directory, and only compared here.
    try check(unsafe input.open(archive))
  }

  deinit { unsafe archive_read_free(archive) }

  /// Advances to an entry by its index in the directory, which must not be less than the current
  /// one.
  func move(to index: Int) throws(ModelError) {
    precondition(index >= position, "entries are read forwards")
    while position <= index {
      let status = unsafe archive_read_next_header(archive, &entry)
      if status == ARCHIVE_EOF {
        throw zip.fault.damaged("its '\(zip.entries[index].path)' cannot be found")
      }
      try check(status)
      position += 1
    }
    let wanted = zip.entries[index]
    guard let entry = unsafe entry, unsafe isSame(entry, wanted) else {
      throw zip.fault.unsafe("its '\(wanted.path)' is a different entry for libarchive")
    }
    remaining = wanted.kind == .file ? wanted.size : 0
    isChecked = wanted.kind != .file
  }

  /// Returns the target of the current link.
  func target() throws(ModelError) -> ByteString {
    guard let entry = unsafe entry,
      let text = unsafe archive_entry_symlink(entry) ?? archive_entry_symlink_utf8(entry)
    else { throw zip.fault.damaged("a link's target cannot be read") }
    return unsafe Self.bytes(text)
  }

  /// Reads into the buffer and returns the number of bytes: less than the buffer's size only at the
  /// end of the file, and 0 after it.
  func read(into buffer: inout [UInt8]) throws(ModelError) -> Int {
    var filled = 0
    let wanted = Int(min(UInt64(buffer.count), remaining))
    while filled < wanted {
      let count = unsafe buffer.withUnsafeMutableBytes { bytes in
        unsafe archive_read_data(
          archive, bytes.baseAddress?.advanced(by: filled), wanted - filled)
      }
      guard count > 0 else { throw failure(Int32(truncatingIfNeeded: count)) }
      filled += count
    }
    remaining -= UInt64(filled)
    if remaining == 0 { try checkEnd() }
    return filled
  }

  /// Reads beyond the end, which makes libarchive check length and checksum.
  private func checkEnd() throws(ModelError) {
    if isChecked { return }
    isChecked = true
    var byte: UInt8 = 0
    let count = unsafe archive_read_data(archive, &byte, 1)
    if count > 0 {
      throw zip.fault.unsafe("its '\(name)' has more bytes than it claims")
    }
    if count < 0 { throw failure(Int32(truncatingIfNeeded: count)) }
  }

  private var name: ByteString { zip.entries[max(0, position - 1)].path }

  private func isSame(_ entry: OpaquePointer, _ wanted: ZipEntry) -> Bool {
    if wanted.kind == .file, unsafe UInt64(clamping: archive_entry_size(entry)) != wanted.size {
      return false
    }
    let text = unsafe archive_entry_pathname(entry) ?? archive_entry_pathname_utf8(entry)
    guard let text = unsafe text else { return true }
    let name = unsafe Self.bytes(text)
    return name == wanted.name || name == wanted.path
      || name == wanted.path.concatenating("/")
  }

  private static func bytes(_ text: UnsafePointer<CChar>) -> ByteString {
    var (pointer, bytes) = unsafe (text, [UInt8]())
    while unsafe pointer.pointee != 0 {
      unsafe bytes.append(UInt8(bitPattern: pointer.pointee))
      unsafe pointer += 1
    }
    return ByteString(bytes)
  }

  /// A warning is acceptable for a header; for data, anything but bytes is a failure.
  private func check(_ status: Int32) throws(ModelError) {
    if status < ARCHIVE_WARN { throw failure(status) }
  }

  private func failure(_ status: Int32) -> ModelError {
    if let error = input.failure { return ModelError(package: error) }
    guard status != 0 else { return zip.fault.damaged("its '\(name)' ends prematurely") }
    let reason = unsafe archive_error_string(archive).map { unsafe String(cString: $0) }
    return zip.fault.damaged(
      "its '\(name)' is damaged: \(reason ?? "libarchive failed without a reason")")
  }
}

// MARK: - Input

extension ZipStream {
  /// The input of libarchive, read with SystemIO to include its fault injection.
  ///
  /// The owner keeps it alive for as long as the libarchive reader exists.
  @safe final class Input {
    private let zip: ZipFile
    private var position: UInt64 = 0
    /// The bytes last passed to libarchive, which must not move until the next call.
    private let buffer: UnsafeMutableBufferPointer<UInt8>
    private var scratch: [UInt8]
    /// The number of bytes to read next: small after a seek, when only a header may be needed.
    private var readSize = Input.minimumRead
    /// The error of a failed call, since libarchive only learns that the call failed.
    private(set) var failure: SystemError?

    private static let minimumRead = 4 << 10
    private static let maximumRead = 256 << 10

    init(_ zip: ZipFile) {
      self.zip = zip
      unsafe buffer = .allocate(capacity: Self.maximumRead)
      unsafe buffer.initialize(repeating: 0)
      scratch = [UInt8](repeating: 0, count: Self.maximumRead)
    }

    deinit { unsafe buffer.deallocate() }

    /// Provides the next bytes: sets a pointer valid until the next call and returns the number of
    /// bytes, or -1 on failure.
    fileprivate func read(_ pointer: UnsafeMutablePointer<UnsafeRawPointer?>?) -> Int {
      do throws(SystemError) {
        let room = zip.size - min(zip.size, position)
        let count = try zip.file.read(
          into: &scratch, from: 0, to: Int(min(UInt64(readSize), room)), at: position)
        _ = unsafe buffer.update(fromContentsOf: scratch.prefix(count))
        unsafe pointer?.pointee = UnsafeRawPointer(buffer.baseAddress)
        position += UInt64(count)
        readSize = min(readSize * 2, Self.maximumRead)
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
      readSize = Self.minimumRead
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
      readSize = Self.minimumRead
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
}

private func input(_ client: UnsafeMutableRawPointer?) -> ZipStream.Input? {
  guard let client = unsafe client else { return nil }
  return unsafe Unmanaged<ZipStream.Input>.fromOpaque(client).takeUnretainedValue()
}

private func readInput(
  _: OpaquePointer?, client: UnsafeMutableRawPointer?,
  pointer: UnsafeMutablePointer<UnsafeRawPointer?>?
) -> Int {
  unsafe input(client)?.read(pointer) ?? -1
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

/// An open zip archive with a checked directory. Reading fails if the file has changed.
final class ZipFile: Sendable {
  let file: Descriptor
  let entries: [ZipEntry]
  let fault: PackageFault
  /// The number of bytes without the comment at the end, which libarchive does not need: it looks
  /// for the end of the archive only in the last 16 KiB, and a comment may have 64 KiB.
  let size: UInt64
  private let status: FileStatus

  /// Opens an archive given as a descriptor and checks its directory.
  init(
    _ file: consuming Descriptor, limits: PackageLimits, fault: PackageFault
  ) throws(ModelError) {
    let status = try Self.status(of: file)
    let directory = try ZipDirectory(of: file, size: status.size, limits: limits, fault: fault)
    entries = directory.entries
    size = directory.archiveEnd
    self.status = status
    self.fault = fault
    self.file = file
  }

  /// Throws if the archive was written to since it was opened.
  func checkUnchanged() throws(ModelError) {
    let now = try Self.status(of: file)
    guard now.size == status.size, now.modified == status.modified, now.changed == status.changed
    else { throw fault.changed(fault.path) }
  }

  private static func status(of file: borrowing Descriptor) throws(ModelError) -> FileStatus {
    do {
      return try file.status()
    } catch {
      throw ModelError(package: error)
    }
  }
}
