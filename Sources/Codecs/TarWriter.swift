/// Appends tar members to a buffer, one at a time, so that the offset of each content is known.
///
/// libarchive writes the headers: POSIX headers (ustar) if name and link target fit, otherwise GNU
/// headers preceded by a long name. Names are written byte for byte: GNU tar, bsdtar and Python
/// list and extract them without a warning. (A pax header would require `hdrcharset=BINARY` for a
/// name that is not UTF-8, about which GNU tar warns; without it bsdtar warns.)
///
/// Members can be combined in any order; `appendEnd(to:)` completes an archive. A writer is for use
/// by one thread. Do not use it after an error.
package struct TarWriter: ~Copyable {
  private let ustar: TarSink
  private let gnu: TarSink
  /// Whether the open member was written in GNU format, and the content bytes still missing.
  private var usesGNU = false
  private var missing = 0
  private var isOpen = false

  /// Creates a writer.
  package init() throws(CodecError) {
    let ustar = try TarSink(.ustar)
    let gnu = try TarSink(.gnu)
    self.ustar = ustar
    self.gnu = gnu
  }

  /// Appends a whole member and returns the offset of its content in the buffer.
  package mutating func append(
    _ member: TarMember, content: Span<UInt8>, to buffer: inout [UInt8]
  ) throws(CodecError) -> Int {
    let place = try begin(member, in: &buffer)
    try write(content, to: &buffer)
    try finish(in: &buffer)
    return place
  }

  /// Appends a whole member and returns the offset of its content in the buffer.
  @discardableResult
  package mutating func append(
    _ member: TarMember, content: [UInt8] = [], to buffer: inout [UInt8]
  ) throws(CodecError) -> Int {
    try append(member, content: content.span, to: &buffer)
  }

  /// Appends the headers of a member and returns the offset of its content in the buffer. The
  /// content follows in any number of calls of `write(_:to:)`, then `finish(in:)`.
  package mutating func begin(
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
  package mutating func write(
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
  package mutating func finish(in buffer: inout [UInt8]) throws(CodecError) {
    precondition(isOpen, "no member is open")
    guard missing == 0 else {
      throw CodecError(
        .unrepresentable, in: .tar, reason: "\(missing) bytes less than the member's size")
    }
    isOpen = false
    if usesGNU { try gnu.finish(to: &buffer) } else { try ustar.finish(to: &buffer) }
  }

  /// Appends the two empty blocks that end an archive.
  package static func appendEnd(to buffer: inout [UInt8]) {
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
