internal import CArchive
internal import Glibc

/// Reads archives with libarchive: tar, cpio, zip, 7-Zip and others, in the compressions that it
/// knows, from a stream or a file.
///
/// Formats whose readers open other files (mtree) or accept any bytes (raw), and compressions for
/// which libarchive starts a program, are not enabled. A hole is skipped and not read as zeros.
/// Memory is bounded by libarchive: a tar needs memory for one header, a zip in a file for a part
/// of its directory (`ZipPart`).
///
/// The names in a tar archive are its bytes. libarchive would convert the UTF-8 of pax records to
/// Unicode's form NFC; if it cannot convert a name to the thread's locale, it takes the bytes
/// (archive_read_support_format_tar.c, `pax_header`), so tar archives are read in the C locale. The
/// names in a zip archive in a file are its bytes as well (`ZipNameFlags`). Other formats have no
/// bytes to take (7-Zip has UTF-16) and need UTF-8.
@safe public struct ArchiveReader: ~Copyable {
  /// The formats to accept.
  public enum Format: Sendable, Hashable {
    case any
    case zip
  }

  private var archive: OpaquePointer
  private let client: Client
  /// The locale of all calls: libarchive converts names while it reads headers.
  private let locale: TextLocale
  /// The first header, which was read to determine the format.
  private var first: Header?
  private var entry: OpaquePointer?
  private var content = Content()
  private var count = 0
  /// The number of damaged headers.
  private var damagedCount = 0
  /// Whether a directory showed that the archive is an incremental one.
  private var isIncremental = false
  /// Whether nothing more can be read: after the last member, or after damage.
  public private(set) var isEnded = false
  /// Whether everything that was read may be wrong: the compressed data is damaged, which shows
  /// only after the damage, at the latest by a checksum of the whole.
  public private(set) var isSuspect = false
  /// A sentence about other content of the file, known after the last member; nil if it has none.
  public private(set) var remark: String?

  /// The position in the content of the current member.
  @safe private struct Content {
    /// The unread bytes of the block that libarchive returned last, valid until its next call.
    var block = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    /// The offset of the block's first unread byte.
    var start: UInt64 = 0
    /// The offset of the next byte to return; less than `start` before a hole.
    var position: UInt64 = 0
    /// The size that the archive claims, or nil if it is unknown.
    var size: UInt64?
    var hasHoles = false
    var isAtEnd = true
  }

  /// The result of reading a header.
  @safe private struct Header {
    let status: Int32
    let entry: OpaquePointer?
  }

  /// Opens an archive.
  ///
  /// - Throws: `library` if memory is short; `unsupported` if it has no known format; `malformed`.
  public init(_ input: any ArchiveInput, format: Format = .any) throws(CodecError) {
    try self.init(input, format: format, partSize: ZipPart.members)
  }

  /// Opens an archive, for tests with a small number of members in a part of a zip archive.
  init(_ input: any ArchiveInput, format: Format, partSize: Int) throws(CodecError) {
    let client = try Client(
      input, isRepeatable: format == .any, partSize: partSize, isDecoding: format == .any)
    let opened: Opened
    if format == .any, let tar = try Self.openTar(client) {
      opened = tar
    } else {
      opened = try Self.openOther(client, format)
    }
    unsafe archive = opened.archive
    (self.client, locale, first) = (client, opened.locale, opened.first)
  }

  deinit { unsafe archive_read_free(archive) }

  // MARK: - Opening

  /// A reader of libarchive that has begun to read.
  @safe private struct Opened {
    let archive: OpaquePointer
    let locale: TextLocale
    var first: Header?
  }

  private static func open(
    _ client: Client, _ formats: Formats
  ) throws(CodecError) -> Opened {
    let archive = try unsafe makeReader(formats)
    let status = TextLocale.utf8.with { unsafe client.open(archive) }
    if status < ARCHIVE_WARN {
      let error = unsafe client.damageAtStart() ?? Self.error(archive, isFirst: true)
      unsafe archive_read_free(archive)
      throw error
    }
    return unsafe Opened(archive: archive, locale: .utf8)
  }

  /// Opens a tar archive and reads its first header. Returns nil for other archives, after which
  /// the input begins again, and for an archive without members: an image of ISO 9660 begins with
  /// zeros, which are the end of a tar.
  private static func openTar(_ client: Client) throws(CodecError) -> Opened? {
    let archive = try unsafe makeReader(.tar)
    if TextLocale.plain.with({ unsafe client.open(archive) }) >= ARCHIVE_WARN {
      var entry: OpaquePointer?
      let status = TextLocale.plain.with { unsafe archive_read_next_header(archive, &entry) }
      if status != ARCHIVE_EOF {
        client.endRepeatable()
        let first = unsafe Header(status: status, entry: entry)
        return unsafe Opened(archive: archive, locale: .plain, first: first)
      }
    }
    let isRepeated = client.beginAgain()
    let error = unsafe Self.error(archive, isFirst: true)
    unsafe archive_read_free(archive)
    if !isRepeated { throw error }
    return nil
  }

  /// Opens an archive other than tar: the first part of a large zip archive, or all of it.
  private static func openOther(
    _ client: Client, _ format: Format
  ) throws(CodecError) -> Opened {
    if client.beginParts() {
      do throws(CodecError) { return try open(client, .zip) } catch { client.endParts() }
    }
    return try open(client, format == .any ? .all : .zip)
  }

  /// Opens the next part of a zip archive. Returns false if there is none.
  private mutating func openNextPart() throws(CodecError) -> Bool {
    guard client.beginNextPart() else { return false }
    do throws(CodecError) {
      let opened = try Self.open(client, .zip)
      unsafe archive_read_free(archive)
      unsafe archive = opened.archive
    } catch {
      isEnded = true
      throw error
    }
    return true
  }

  // MARK: - Members

  /// The format and the compression in libarchive's words, known after the first member: "POSIX pax
  /// interchange format", "zstd"; nil for no compression.
  public var formatName: (format: String, compression: String?) {
    let format = unsafe archive_format_name(archive).map { unsafe String(cString: $0) }
    let isPlain = unsafe archive_filter_code(archive, 0) == ARCHIVE_FILTER_NONE
    let filter = unsafe archive_filter_name(archive, 0).map { unsafe String(cString: $0) }
    return (format ?? "unknown", client.decoded?.name ?? (isPlain ? nil : filter))
  }

  /// Whether the archive is in a cpio format, in which the last hard link of a file has the
  /// content.
  public var isCPIO: Bool {
    unsafe archive_format(archive) & ARCHIVE_FORMAT_BASE_MASK == ARCHIVE_FORMAT_CPIO
  }

  /// Whether names are the bytes of the archive, which libarchive does not convert in tar and cpio
  /// archives, nor in a zip archive in a file. Known after the first member.
  public var keepsNames: Bool {
    let format = unsafe archive_format(archive) & ARCHIVE_FORMAT_BASE_MASK
    return format == ARCHIVE_FORMAT_TAR || isCPIO
      || format == ARCHIVE_FORMAT_ZIP && client.keepsZipNames
  }

  /// The number of bytes of the archive that were read, before decompression.
  public var consumedBytes: UInt64 {
    client.decoded?.consumedBytes ?? UInt64(clamping: unsafe archive_filter_bytes(archive, -1))
  }

  /// Returns the next member, or nil after the last one. Unread content is skipped.
  ///
  /// - Throws: If nothing more can be read, `isEnded` is true; otherwise the next call returns the
  ///   member after the damaged one.
  public mutating func next() throws(CodecError) -> ArchiveMember? {
    content = Content()
    if isEnded { return nil }
    var header = nextHeader()
    while header.status == ARCHIVE_EOF, try openNextPart() { header = nextHeader() }
    let status = header.status
    if status == ARCHIVE_EOF {
      isEnded = true
      // Precedes reading the rest of compressed data for its checksum.
      let isFollowed = isFollowed
      try requireSoundEnd()
      try requireEndMark()
      try requireZipDirectory()
      if isFollowed {
        throw CodecError(
          .malformed, in: .archive,
          reason: "another archive follows its end mark, and that archive's entries are missing")
      }
      return nil
    }
    // A tar header with a wrong checksum can be retried: the next call reads the next block, and so
    // finds the next sound header.
    if status < ARCHIVE_WARN || status == ARCHIVE_RETRY {
      damagedCount += 1
      throw fault(status)
    }
    guard let found = unsafe header.entry else { throw fault(ARCHIVE_FATAL) }
    unsafe entry = found
    count += 1
    var member = locale.with { unsafe ArchiveMember(found) }
    if unsafe archive_format(archive) & ARCHIVE_FORMAT_BASE_MASK == ARCHIVE_FORMAT_TAR {
      (member.modified, member.nanoseconds) = PaxTime.corrected(
        member.modified, member.nanoseconds)
      member.attributes = PaxAttributeName.decoded(member.attributes)
    }
    if let path = member.path, let name = client.name(for: path) { member.path = name }
    member.isRenamed = client.isRenamed(member, at: count + damagedCount - 1)
    unsafe client.setNamesWithNUL(of: &member, in: archive)
    if unsafe archive_entry_size_is_set(found) != 0 {
      content.size = unsafe UInt64(clamping: archive_entry_size(found))
    }
    content.hasHoles = unsafe archive_entry_sparse_count(found) > 0
    content.isAtEnd = false
    if !isIncremental, case .directory = member.kind {
      isIncremental = client.listsUnchanged
      if !isIncremental { isIncremental = try contentListsUnchanged(size: content.size) }
      if isIncremental { member.omissions.append(Self.incremental) }
    }
    return member
  }

  private mutating func nextHeader() -> Header {
    if let header = first.take() { return header }
    var entry: OpaquePointer?
    let status = locale.with { [archive = unsafe archive] in
      unsafe archive_read_next_header(archive, &entry)
    }
    return unsafe Header(status: status, entry: entry)
  }

  /// Skips the hole at the current position of the content and returns its length in bytes, or 0.
  ///
  /// - Throws: as `read(into:)` does.
  public mutating func skipHole() throws(CodecError) -> UInt64 {
    try fill()
    let end = unsafe content.block.isEmpty ? endOfHole : content.start
    defer { content.position = max(end, content.position) }
    return end > content.position ? end - content.position : 0
  }

  /// Reads the next bytes of the content and returns their number: 0 at the end. Holes are zeros.
  ///
  /// - Throws: `malformed` for damaged content; `isEnded` is then true if the archive cannot be
  ///   read any further.
  public mutating func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(CodecError) -> Int {
    try fill()
    let data = unsafe content.block.isEmpty ? endOfHole : content.start
    if data > content.position {
      let count = Int(min(UInt64(buffer.count), data - content.position))
      _ = unsafe buffer.prefix(count).initializeMemory(as: UInt8.self, repeating: 0)
      content.position += UInt64(count)
      return count
    }
    let count = unsafe min(buffer.count, content.block.count)
    guard count > 0 else { return 0 }
    unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: content.block.prefix(count)))
    unsafe content.block = UnsafeRawBufferPointer(rebasing: content.block.dropFirst(count))
    content.start += UInt64(count)
    content.position = content.start
    return count
  }

  /// The end of the hole that follows the last block.
  private var endOfHole: UInt64 { content.hasHoles ? content.size ?? 0 : 0 }

  /// Gets the next block of data, if none is left and the content has one.
  private mutating func fill() throws(CodecError) {
    while unsafe content.block.isEmpty, !content.isAtEnd {
      var start: UnsafeRawPointer?
      var (count, offset) = (0, Int64(0))
      let status = locale.with { [archive = unsafe archive] in
        unsafe archive_read_data_block(archive, &start, &count, &offset)
      }
      if status == ARCHIVE_EOF {
        content.isAtEnd = true
        try requireSize()
      } else if status != ARCHIVE_OK {
        content.isAtEnd = true
        throw fault(status)
      } else if count > 0 {
        guard let first = UInt64(exactly: offset), first >= content.position else {
          throw CodecError(.malformed, in: .archive, reason: "its content is out of order")
        }
        unsafe content.block = UnsafeRawBufferPointer(start: start, count: count)
        content.start = first
      }
    }
  }

  /// Checks that the content without holes has the claimed size.
  private func requireSize() throws(CodecError) {
    guard let size = content.size, !content.hasHoles, content.position != size else { return }
    throw CodecError(
      .malformed, in: .archive,
      reason: "its content has \(content.position) bytes instead of \(size)")
  }

  /// Checks the compressed data up to its end.
  private mutating func requireSoundEnd() throws(CodecError) {
    guard let failure = try client.finishDecoding() else { return }
    isSuspect = failure.isSuspect
    throw failure.error
  }

  /// Checks that a tar archive ends with zeros, of which libarchive has then read a block.
  /// libarchive also mistakes the end of the data between two members for the end of the archive.
  private func requireEndMark() throws(CodecError) {
    guard unsafe archive_format(archive) & ARCHIVE_FORMAT_BASE_MASK == ARCHIVE_FORMAT_TAR,
      unsafe archive_filter_bytes(archive, 0) == archive_read_header_position(archive)
    else { return }
    throw CodecError(
      .truncated, in: .archive,
      reason: "it has no end mark, as if it were truncated: entries may be missing")
  }

  /// Checks that the members of a zip archive in a file were those of its directory. libarchive
  /// reads an archive without one as a stream, and accepts one of several headers that lead to the
  /// same member.
  private mutating func requireZipDirectory() throws(CodecError) {
    guard unsafe archive_format(archive) & ARCHIVE_FORMAT_BASE_MASK == ARCHIVE_FORMAT_ZIP else {
      return
    }
    if !client.hasZipDirectory {
      throw CodecError(
        .truncated, in: .archive,
        reason: "the directory at its end is missing or damaged, as if it were truncated: entries "
          + "and permissions may be missing, and links may be files")
    }
    if let expected = client.zipCount, UInt64(count + damagedCount) < expected {
      throw CodecError(
        .malformed, in: .archive,
        reason: "its directory has \(expected) entries, of which only \(count) could be read: "
          + "others lead to the same data")
    }
    if let lead = client.zipLead { remark = try lead.remark() }
  }

  /// Whether another archive follows the end mark of a tar archive, such as one appended with
  /// `cat`, or follows a zip archive in a stream: libarchive, like tar, reads nothing after it.
  /// Unknown, and false, if libarchive decompresses the archive.
  private var isFollowed: Bool {
    guard unsafe archive_filter_code(archive, 0) == ARCHIVE_FILTER_NONE else { return false }
    let end = unsafe UInt64(clamping: archive_filter_bytes(archive, 0))
    switch unsafe archive_format(archive) & ARCHIVE_FORMAT_BASE_MASK {
    case ARCHIVE_FORMAT_TAR: return client.hasTar(after: end)
    case ARCHIVE_FORMAT_ZIP: return client.hasZip(after: end)
    default: return false
    }
  }

  private mutating func fault(_ status: Int32) -> CodecError {
    let error = unsafe Self.error(archive, isFirst: count == 0)
    guard status == ARCHIVE_FATAL else { return error }
    isEnded = true
    // If the compressed data is damaged, that is the cause of libarchive's finding.
    do throws(CodecError) { try requireSoundEnd() } catch { return error }
    // The readers of zip and other formats have no message for data that ends too early.
    if unsafe archive_error_string(archive) == nil {
      return CodecError(.truncated, in: .archive, reason: "it is truncated")
    }
    // liblzma waits for more.
    if error.reason.contains("No progress is possible") {
      return CodecError(.truncated, in: .archive, reason: "its compressed data is truncated")
    }
    isSuspect =
      client.decoded == nil && formatName.compression != nil && !error.reason.contains("runcated")
    return error
  }

  private static func error(_ archive: OpaquePointer, isFirst: Bool) -> CodecError {
    // The number that libarchive documents as ARCHIVE_ERRNO_FILE_FORMAT.
    if isFirst, unsafe archive_errno(archive) == EILSEQ, unsafe archive_format(archive) == 0 {
      return CodecError(
        .unsupported, in: .archive, reason: "it is not an archive of a known format")
    }
    return CodecError(.malformed, in: .archive, reason: unsafe LibArchive.reason(archive))
  }
}
