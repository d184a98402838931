internal import CArchive

/// Writes a zip archive, or compresses a stream, with libarchive.
///
/// The output of each call is appended to the caller's buffer.
@safe public struct ArchiveWriter: ~Copyable {
  /// The form of the output.
  public enum Form: Sendable, Hashable {
    /// A zip archive with deflated files.
    case zip
    /// A zip archive with files that are not compressed.
    case storedZip
    /// The bytes themselves, compressed.
    case gzip
    case zstd
  }

  private let archive: OpaquePointer
  private let entry: OpaquePointer
  /// The output; allocated, so that the callback can refer to it.
  private let output: UnsafeMutablePointer<Output>
  private var isFinished = false

  /// Prepares a writer.
  ///
  /// - Throws: `library` if memory is short, or if libarchive was built without the compression.
  public init(_ form: Form) throws(CodecError) {
    guard let archive = unsafe archive_write_new() else { throw Self.noMemory }
    guard let entry = unsafe archive_entry_new() else {
      unsafe archive_write_free(archive)
      throw Self.noMemory
    }
    let output = UnsafeMutablePointer<Output>.allocate(capacity: 1)
    unsafe output.initialize(to: Output())
    let status = unsafe Self.open(archive, entry, as: form, to: output)
    if status != ARCHIVE_OK {
      let error = unsafe Self.fault(status, archive)
      unsafe Self.close(archive, entry, output: output, isFinished: false)
      throw error
    }
    unsafe (self.archive, self.entry, self.output) = (archive, entry, output)
  }

  deinit { unsafe Self.close(archive, entry, output: output, isFinished: isFinished) }

  /// Opens the writer; a stream is the only member of a "raw" archive.
  private static func open(
    _ archive: OpaquePointer, _ entry: OpaquePointer, as form: Form,
    to output: UnsafeMutablePointer<Output>
  ) -> Int32 {
    let prepared =
      switch form {
      case .zip: unsafe [archive_write_set_format_zip(archive)]
      case .storedZip:
        unsafe [
          archive_write_set_format_zip(archive), archive_write_zip_set_compression_store(archive),
        ]
      case .gzip:
        unsafe [archive_write_set_format_raw(archive), archive_write_add_filter_gzip(archive)]
      case .zstd:
        unsafe [archive_write_set_format_raw(archive), archive_write_add_filter_zstd(archive)]
      }
    if let failed = prepared.first(where: { $0 != ARCHIVE_OK }) { return failed }
    unsafe archive_write_set_bytes_per_block(archive, 0)
    let status = unsafe archive_write_open(archive, output, nil, appendToArchive, nil)
    if status != ARCHIVE_OK || form == .zip || form == .storedZip { return status }
    unsafe archive_entry_set_filetype(entry, LibArchive.FileType.regular)
    return unsafe archive_write_header(archive, entry)
  }

  /// Frees everything. An unfinished writer does not write the end of an archive.
  private static func close(
    _ archive: OpaquePointer, _ entry: OpaquePointer, output: UnsafeMutablePointer<Output>,
    isFinished: Bool
  ) {
    if !isFinished { unsafe archive_write_fail(archive) }
    unsafe archive_write_free(archive)
    unsafe archive_entry_free(entry)
    unsafe output.deinitialize(count: 1)
    unsafe output.deallocate()
  }

  private static let noMemory = CodecError(
    .library, in: .archive, reason: "not enough memory for the writer")

  /// Begins a member of a zip archive: a file of a given size, a directory or a symbolic link. The
  /// content of the previous member must be complete.
  ///
  /// - Throws: `unrepresentable` for other kinds and for what zip cannot hold.
  public mutating func begin(
    _ member: PaxMember, to buffer: inout [UInt8]
  ) throws(CodecError) {
    // The name is marked as UTF-8 only if it is. Other names stay bytes without a known encoding.
    let isText = String(validating: member.path, as: UTF8.self) != nil
    let locale = isText ? TextLocale.utf8 : .plain
    unsafe archive_entry_clear(entry)
    switch member.kind {
    case .file(let size):
      unsafe archive_entry_set_filetype(entry, LibArchive.FileType.regular)
      unsafe archive_entry_set_size(entry, Int64(clamping: size))
    case .directory: unsafe archive_entry_set_filetype(entry, LibArchive.FileType.directory)
    case .symbolicLink(let target):
      unsafe archive_entry_set_filetype(entry, LibArchive.FileType.symbolicLink)
      unsafe LibArchive.withCString(target) { unsafe archive_entry_copy_symlink(entry, $0) }
    default:
      throw CodecError(.unrepresentable, in: .archive, reason: "zip has no such file type")
    }
    unsafe archive_entry_set_perm(entry, UInt32(member.mode & 0o7777))
    unsafe archive_entry_set_uid(entry, Int64(member.owner))
    unsafe archive_entry_set_gid(entry, Int64(member.group))
    unsafe archive_entry_set_mtime(entry, Int(member.modified), Int(member.nanoseconds))
    unsafe LibArchive.withCString(member.headerPath) {
      unsafe archive_entry_copy_pathname(entry, $0)
    }
    try collect(in: &buffer) { [archive = unsafe archive, entry = unsafe entry] in
      locale.with { unsafe archive_write_header(archive, entry) }
    }
  }

  /// Writes content.
  public mutating func write(
    _ bytes: UnsafeRawBufferPointer, to buffer: inout [UInt8]
  ) throws(CodecError) {
    var rest = unsafe bytes
    while unsafe !rest.isEmpty {
      var written = 0
      try collect(in: &buffer) { [archive = unsafe archive] in
        written = unsafe archive_write_data(archive, rest.baseAddress, rest.count)
        return written > 0 ? ARCHIVE_OK : ARCHIVE_FATAL
      }
      unsafe rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(written))
    }
  }

  /// Writes the end of the archive or stream.
  public mutating func finish(to buffer: inout [UInt8]) throws(CodecError) {
    try collect(in: &buffer) { [archive = unsafe archive] in
      TextLocale.utf8.with { unsafe archive_write_close(archive) }
    }
    isFinished = true
  }

  /// Writes the end of a zip archive, which has a header for each member, in portions.
  ///
  /// - Parameters:
  ///   - buffer: Gets the bytes after the last portion.
  ///   - take: Removes the bytes of a portion, or returns false to end the writing with an error.
  public mutating func finish(
    to buffer: inout [UInt8], portions take: (inout [UInt8]) -> Bool
  ) throws(CodecError) {
    try withoutActuallyEscaping(take) { take throws(CodecError) in
      unsafe output.pointee.take = take
      defer { unsafe output.pointee.take = nil }
      try finish(to: &buffer)
    }
  }

  private func collect(in buffer: inout [UInt8], _ call: () -> Int32) throws(CodecError) {
    let status = call()
    unsafe buffer += output.pointee.bytes
    unsafe output.pointee.bytes.removeAll(keepingCapacity: true)
    if status < ARCHIVE_WARN { throw unsafe Self.fault(status, archive) }
  }

  private static func fault(_ status: Int32, _ archive: OpaquePointer) -> CodecError {
    CodecError(
      status == ARCHIVE_FATAL ? .library : .unrepresentable, in: .archive,
      reason: unsafe LibArchive.reason(archive))
  }
}

extension ArchiveWriter {
  /// The bytes that libarchive has written.
  fileprivate struct Output {
    var bytes: [UInt8] = []
    /// Takes portions of the bytes before libarchive has written all; nil to collect them.
    var take: ((inout [UInt8]) -> Bool)?

    /// The number of bytes of a portion.
    static let portion = 1 << 20
  }
}

/// The libarchive callback that takes what an archive writes. `client` is the output.
private func appendToArchive(
  _: OpaquePointer?, client: UnsafeMutableRawPointer?, bytes: UnsafeRawPointer?, count: Int
) -> Int {
  guard let output = unsafe client?.assumingMemoryBound(to: ArchiveWriter.Output.self) else {
    return -1
  }
  let added = unsafe UnsafeRawBufferPointer(start: bytes, count: count)
  unsafe output.pointee.bytes.append(contentsOf: added)
  if let take = unsafe output.pointee.take,
    unsafe output.pointee.bytes.count >= ArchiveWriter.Output.portion,
    unsafe !take(&output.pointee.bytes)
  {
    return -1
  }
  return count
}
