internal import CArchive
internal import SandboxModel
internal import SystemIO

/// Extracts the entries of a zip archive in sequence with libarchive.
///
/// libarchive reads the directory itself; for each entry, its view is compared with the checked
/// `ZipDirectory`. It checks an entry's length and checksum at the end of the entry.
@safe final class ZipStream {
  private let archive: OpaquePointer
  private let input: ZipInput
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
    input = ZipInput(zip)
    try check(unsafe archive_read_support_format_zip_seekable(archive))
    // No charset is set, so libarchive leaves names as bytes, except those marked as UTF-8, which
    // it converts. Names are therefore taken from the directory, and only compared here.
    try check(unsafe input.open(archive))
  }

  deinit { unsafe archive_read_free(archive) }

  /// Advances to an entry by its index in the directory, which must not be less than the current
  /// one.
  func go(to index: Int) throws(ModelError) {
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
      || name == ByteString(Array(wanted.path.bytes) + [ByteString.slash])
  }

  private static func bytes(_ text: UnsafePointer<CChar>) -> ByteString {
    var (place, bytes) = unsafe (text, [UInt8]())
    while unsafe place.pointee != 0 {
      unsafe bytes.append(UInt8(bitPattern: place.pointee))
      unsafe place += 1
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
