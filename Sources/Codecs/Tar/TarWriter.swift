internal import CArchive

/// Appends tar members to a buffer, one at a time, so that the offset of each content is known.
///
/// libarchive writes the headers: POSIX headers (ustar) if name and link target fit, otherwise GNU
/// headers preceded by a long name. Names are written byte for byte: GNU tar, bsdtar and Python
/// list and extract them without a warning. (A pax header would require `hdrcharset=BINARY` for a
/// name that is not UTF-8, about which GNU tar warns; without it bsdtar warns.)
///
/// Members can be combined in any order; `appendEnd(to:)` completes an archive. A writer is for use
/// by one thread. Do not use it after an error.
public struct TarWriter: ~Copyable {
  private let ustar: Sink
  private let gnu: Sink
  /// Whether the open member was written in GNU format, and the content bytes still missing.
  private var usesGNU = false
  private var missing = 0
  private var isOpen = false

  /// Creates a writer.
  public init() throws(CodecError) {
    let ustar = try Sink(.ustar)
    let gnu = try Sink(.gnu)
    self.ustar = ustar
    self.gnu = gnu
  }

  /// Appends a whole member and returns the offset of its content in the buffer.
  public mutating func append(
    _ member: TarMember, content: Span<UInt8>, to buffer: inout [UInt8]
  ) throws(CodecError) -> Int {
    let start = try begin(member, in: &buffer)
    try write(content, to: &buffer)
    try finish(in: &buffer)
    return start
  }

  /// Appends the headers of a member and returns the offset of its content in the buffer. The
  /// content follows in any number of calls of `write(_:to:)`, then `finish(in:)`.
  public mutating func begin(
    _ member: TarMember, in buffer: inout [UInt8]
  ) throws(CodecError) -> Int {
    precondition(!isOpen, "the previous member is not finished")
    try Self.check(member)
    usesGNU = !member.fitsPlainHeader
    missing = member.contentSize
    isOpen = true
    if usesGNU {
      try gnu.header(member, to: &buffer)
    } else {
      try ustar.header(member, to: &buffer)
    }
    return buffer.count
  }

  /// Appends content of the open member.
  public mutating func write(
    _ content: Span<UInt8>, to buffer: inout [UInt8]
  ) throws(CodecError) {
    precondition(isOpen, "no member is open")
    guard content.count <= missing else {
      throw CodecError(.unrepresentable, in: .tar, reason: "more content than the member's size")
    }
    missing -= content.count
    if content.isEmpty { return }
    if usesGNU {
      try gnu.content(content, to: &buffer)
    } else {
      try ustar.content(content, to: &buffer)
    }
  }

  /// Finishes the open member, whose content must be complete.
  public mutating func finish(in buffer: inout [UInt8]) throws(CodecError) {
    precondition(isOpen, "no member is open")
    guard missing == 0 else {
      throw CodecError(
        .unrepresentable, in: .tar, reason: "\(missing) bytes less than the member's size")
    }
    isOpen = false
    if usesGNU { try gnu.finish(to: &buffer) } else { try ustar.finish(to: &buffer) }
  }

  /// Appends the two empty blocks that end an archive.
  public static func appendEnd(to buffer: inout [UInt8]) {
    buffer.append(contentsOf: repeatElement(0, count: TarMember.endSize))
  }

  /// Refuses values that a tar header would silently change or truncate.
  private static func check(_ member: TarMember) throws(CodecError) {
    let slash = UInt8(ascii: "/")
    guard let last = member.path.last, last != slash, !member.path.contains(0) else {
      throw CodecError(
        .unrepresentable, in: .tar,
        reason: "a member's name is empty, ends with a slash or contains a NUL")
    }
    switch member.kind {
    case .file(let size):
      guard 0..<(1 << 33) ~= size else {
        throw CodecError(.unrepresentable, in: .tar, reason: "a member of \(size) bytes")
      }
    case .symbolicLink(let target), .hardLink(let target):
      guard !target.isEmpty, !target.contains(0) else {
        throw CodecError(
          .unrepresentable, in: .tar, reason: "a link's target is empty or contains a NUL")
      }
    case .directory: break
    case .other:
      throw CodecError(.unrepresentable, in: .tar, reason: "neither file, directory nor link")
    }
  }
}

extension TarWriter {
  /// A libarchive writer of one format that appends to an array.
  @safe struct Sink: ~Copyable {
    private let archive: OpaquePointer
    private let entry: OpaquePointer
    /// The array that the callback appends to. The caller's array is swapped in for each call.
    private let output: UnsafeMutablePointer<[UInt8]>

    enum Format {
      /// POSIX headers of 1988 without extensions.
      case ustar
      /// GNU headers with long names.
      case gnu
    }

    init(_ format: Format) throws(CodecError) {
      guard let archive = unsafe archive_write_new() else { throw Self.noMemory }
      guard let entry = unsafe archive_entry_new() else {
        unsafe archive_write_free(archive)
        throw Self.noMemory
      }
      let output = UnsafeMutablePointer<[UInt8]>.allocate(capacity: 1)
      unsafe output.initialize(to: [])
      do throws(CodecError) {
        try unsafe Self.open(archive, as: format, to: output)
      } catch {
        unsafe Self.close(archive, entry: entry, output: output)
        throw error
      }
      unsafe self.archive = archive
      unsafe self.entry = entry
      unsafe self.output = output
    }

    deinit { unsafe Self.close(archive, entry: entry, output: output) }

    private static func open(
      _ archive: OpaquePointer, as format: Format, to output: UnsafeMutablePointer<[UInt8]>
    ) throws(CodecError) {
      switch format {
      case .ustar: try unsafe check(archive_write_set_format_ustar(archive), archive)
      case .gnu: try unsafe check(archive_write_set_format_gnutar(archive), archive)
      }
      // No buffering: each block is passed to the callback at once, so offsets are known after each
      // call.
      try unsafe check(archive_write_set_bytes_per_block(archive, 0), archive)
      try unsafe check(archive_write_open(archive, output, nil, appendToOutput, nil), archive)
    }

    private static func close(
      _ archive: OpaquePointer, entry: OpaquePointer, output: UnsafeMutablePointer<[UInt8]>
    ) {
      // A failed writer is freed without writing the blocks that end an archive.
      unsafe archive_write_fail(archive)
      unsafe archive_write_free(archive)
      unsafe archive_entry_free(entry)
      unsafe output.deinitialize(count: 1)
      unsafe output.deallocate()
    }

    private static let noMemory = CodecError(
      .library, in: .tar, reason: "not enough memory for the writer")

    /// Writes the headers of a member.
    func header(_ member: TarMember, to buffer: inout [UInt8]) throws(CodecError) {
      unsafe archive_entry_clear(entry)
      unsafe archive_entry_set_perm(entry, UInt32(member.mode & 0o7777))
      unsafe archive_entry_set_mtime(entry, Int(min(max(member.modified, 0), 0o777_7777_7777)), 0)
      unsafe archive_entry_set_size(entry, Int64(member.contentSize))
      unsafe LibArchive.withCString(member.headerPath) {
        unsafe archive_entry_copy_pathname(entry, $0)
      }
      switch member.kind {
      case .file, .other: unsafe archive_entry_set_filetype(entry, LibArchive.FileType.regular)
      case .directory: unsafe archive_entry_set_filetype(entry, LibArchive.FileType.directory)
      case .symbolicLink(let target):
        unsafe archive_entry_set_filetype(entry, LibArchive.FileType.symbolicLink)
        unsafe LibArchive.withCString(target) { unsafe archive_entry_copy_symlink(entry, $0) }
      case .hardLink(let target):
        unsafe archive_entry_set_filetype(entry, LibArchive.FileType.regular)
        unsafe LibArchive.withCString(target) { unsafe archive_entry_copy_hardlink(entry, $0) }
      }
      try write(to: &buffer) { unsafe archive_write_header(archive, entry) }
    }

    /// Writes content of the current member.
    func content(_ bytes: Span<UInt8>, to buffer: inout [UInt8]) throws(CodecError) {
      try write(to: &buffer) {
        unsafe bytes.withUnsafeBytes { bytes in
          let written = unsafe archive_write_data(archive, bytes.baseAddress, bytes.count)
          return written == bytes.count ? ARCHIVE_OK : Int32(min(written, Int(ARCHIVE_FATAL)))
        }
      }
    }

    /// Finishes the member: pads its content.
    func finish(to buffer: inout [UInt8]) throws(CodecError) {
      try write(to: &buffer) { unsafe archive_write_finish_entry(archive) }
    }

    private func write(to buffer: inout [UInt8], _ call: () -> Int32) throws(CodecError) {
      unsafe swap(&output.pointee, &buffer)
      let status = call()
      unsafe swap(&output.pointee, &buffer)
      try unsafe Self.check(status, archive)
    }

    private static func check(_ status: Int32, _ archive: OpaquePointer) throws(CodecError) {
      guard status != ARCHIVE_OK else { return }
      throw CodecError(.library, in: .tar, reason: unsafe LibArchive.reason(archive))
    }
  }
}
