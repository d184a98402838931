internal import CArchive

/// Reads a tar archive in memory with libarchive: for checks and for foreign archives.
///
/// Names are the bytes of the archive. Text of a pax header that is not UTF-8 is returned
/// unchanged.
@safe public struct TarReader: ~Copyable {
  private let archive: OpaquePointer
  private let limits: Limits
  private var count = 0
  private var total = 0

  /// The limits of an archive.
  public struct Limits: Sendable {
    /// The maximum number of members.
    public var members: Int
    /// The maximum size of one member's content in bytes.
    public var contentSize: Int
    /// The maximum size of all content in bytes, including holes, which an archive need not store.
    public var totalSize: Int

    /// Creates limits: by default 1,000,000 members of at most 16 MiB, and 1 GiB in total.
    public init(
      members: Int = 1_000_000, contentSize: Int = 16 << 20, totalSize: Int = 1 << 30
    ) {
      self.members = members
      self.contentSize = contentSize
      self.totalSize = totalSize
    }
  }

  /// Calls `body` with each member and its content, in the order of the archive.
  public static func forEach(
    in bytes: Span<UInt8>, limits: Limits = Limits(),
    _ body: (TarMember, [UInt8]) throws(CodecError) -> Void
  ) throws(CodecError) {
    try unsafe bytes.withUnsafeBytes { (buffer) throws(CodecError) in
      var reader = try unsafe TarReader(buffer, limits)
      while let member = try reader.next() {
        try body(member, try reader.content(member.contentSize))
      }
    }
  }

  /// Returns all members in the order of the archive, without copying their content.
  public static func headers(
    in bytes: Span<UInt8>, limits: Limits = Limits()
  ) throws(CodecError) -> [TarMember] {
    var members: [TarMember] = []
    try unsafe bytes.withUnsafeBytes { (buffer) throws(CodecError) in
      var reader = try unsafe TarReader(buffer, limits)
      while let member = try reader.next() { members.append(member) }
    }
    return members
  }

  private init(_ bytes: UnsafeRawBufferPointer, _ limits: Limits) throws(CodecError) {
    guard let archive = unsafe archive_read_new() else {
      throw CodecError(.library, in: .tar, reason: "not enough memory for the reader")
    }
    do throws(CodecError) {
      try unsafe Self.check(archive_read_support_format_tar(archive), archive)
      try unsafe Self.check(
        archive_read_open_memory(archive, bytes.baseAddress, bytes.count), archive)
    } catch {
      unsafe archive_read_free(archive)
      throw error
    }
    unsafe self.archive = archive
    self.limits = limits
  }

  deinit { unsafe archive_read_free(archive) }

  private mutating func next() throws(CodecError) -> TarMember? {
    var entry: OpaquePointer?
    let status = unsafe archive_read_next_header(archive, &entry)
    if status == ARCHIVE_EOF { return nil }
    try unsafe Self.check(status, archive)
    guard let entry = unsafe entry else { return nil }
    count += 1
    guard count <= limits.members else {
      throw CodecError(.limit, in: .tar, reason: "it has more than \(limits.members) members")
    }
    let member = try unsafe Self.member(entry)
    try admit(member.contentSize)
    return member
  }

  private static func member(_ entry: OpaquePointer) throws(CodecError) -> TarMember {
    var path = try unsafe bytes(
      archive_entry_pathname(entry) ?? archive_entry_pathname_utf8(entry), "name")
    let kind = try unsafe kind(entry)
    if kind == .directory, path.last == UInt8(ascii: "/") { path.removeLast() }
    return unsafe TarMember(
      path: path, kind: kind, mode: UInt16(archive_entry_perm(entry) & 0o7777),
      modified: Int64(archive_entry_mtime(entry)))
  }

  private static func kind(_ entry: OpaquePointer) throws(CodecError) -> TarMember.Kind {
    if let target = unsafe archive_entry_hardlink(entry) ?? archive_entry_hardlink_utf8(entry) {
      return .hardLink(target: try unsafe bytes(target, "link"))
    }
    switch unsafe archive_entry_filetype(entry) & LibArchive.FileType.mask {
    case LibArchive.FileType.regular:
      guard let size = unsafe Int(exactly: archive_entry_size(entry)), size >= 0 else {
        throw CodecError(.malformed, in: .tar, reason: "a member has a negative size")
      }
      return .file(size: size)
    case LibArchive.FileType.directory: return .directory
    case LibArchive.FileType.symbolicLink:
      let target = unsafe archive_entry_symlink(entry) ?? archive_entry_symlink_utf8(entry)
      return .symbolicLink(target: try unsafe bytes(target, "link"))
    default: return .other
    }
  }

  private static func bytes(
    _ text: UnsafePointer<CChar>?, _ what: String
  ) throws(CodecError) -> [UInt8] {
    guard let bytes = unsafe LibArchive.bytes(text) else {
      throw CodecError(.malformed, in: .tar, reason: "a member's \(what) cannot be read")
    }
    return bytes
  }

  private mutating func admit(_ size: Int) throws(CodecError) {
    guard size <= limits.contentSize else {
      throw CodecError(
        .limit, in: .tar,
        reason: "a member claims \(size) bytes, more than the limit of \(limits.contentSize)")
    }
    total += size
    guard total <= limits.totalSize else {
      throw CodecError(
        .limit, in: .tar, reason: "its members have more than \(limits.totalSize) bytes")
    }
  }

  /// Reads the content of a member in pieces, so that memory grows only with actual data.
  private func content(_ size: Int) throws(CodecError) -> [UInt8] {
    var content: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: min(size, 64 << 10))
    while content.count < size {
      let count = unsafe piece.withUnsafeMutableBytes { buffer in
        unsafe archive_read_data(archive, buffer.baseAddress, buffer.count)
      }
      if count < 0 { try unsafe Self.check(Int32(count), archive) }
      guard count > 0 else {
        throw CodecError(.truncated, in: .tar, reason: "a member's content ends early")
      }
      content.append(contentsOf: piece.prefix(count))
    }
    return content
  }

  /// Throws for failures. Warnings are ignored.
  private static func check(_ status: Int32, _ archive: OpaquePointer) throws(CodecError) {
    guard status < ARCHIVE_WARN else { return }
    throw CodecError(.malformed, in: .tar, reason: unsafe LibArchive.reason(archive))
  }
}
