/// Appends tar members to a buffer, one by one, so that the place of each content is known.
///
/// libarchive writes the headers: POSIX ones (ustar) where name and link fit, else GNU's with a long
/// name before. Names are written as they are, whatever bytes they have: GNU tar, bsdtar and
/// Python list and extract them without a warning. (A pax header would have to say
/// `hdrcharset=BINARY` for a name that is not UTF-8, of which GNU tar warns, and without it bsdtar
/// warns.)
///
/// Members can be put together in any order; `appendEnd(to:)` makes an archive of them. A writer
/// is used by one thread. After an error it must not be used again.
public struct TarWriter: ~Copyable {
  private let ustar: TarSink
  private let gnu: TarSink
  /// Which of both the open member was given to, and how much content it still lacks.
  private var usesGNU = false
  private var missing = 0
  private var isOpen = false

  /// Makes a writer.
  public init() throws(CodecError) {
    let ustar = try TarSink(.ustar)
    let gnu = try TarSink(.gnu)
    self.ustar = ustar
    self.gnu = gnu
  }

  /// Appends a whole member and returns the place of its content in the buffer.
  public mutating func append(
    _ member: TarMember, content: Span<UInt8>, to buffer: inout [UInt8]
  ) throws(CodecError) -> Int {
    let place = try begin(member, in: &buffer)
    try write(content, to: &buffer)
    try finish(in: &buffer)
    return place
  }

  /// Appends a whole member and returns the place of its content in the buffer.
  @discardableResult
  public mutating func append(
    _ member: TarMember, content: [UInt8] = [], to buffer: inout [UInt8]
  ) throws(CodecError) -> Int {
    try append(member, content: content.span, to: &buffer)
  }

  /// Appends a member's headers and returns the place of its content in the buffer; the content
  /// follows by `write(_:to:)` in any number of pieces, then `finish(in:)`.
  public mutating func begin(
    _ member: TarMember, in buffer: inout [UInt8]
  ) throws(CodecError) -> Int {
    precondition(!isOpen, "the member before is not finished")
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

  /// Appends content of the member that was begun.
  public mutating func write(
    _ content: Span<UInt8>, to buffer: inout [UInt8]
  ) throws(CodecError) {
    precondition(isOpen, "no member was begun")
    guard content.count <= missing else {
      throw CodecError(.unrepresentable, .tar, "more content than the member's size")
    }
    missing -= content.count
    if content.isEmpty { return }
    if usesGNU {
      try gnu.content(content, to: &buffer)
    } else {
      try ustar.content(content, to: &buffer)
    }
  }

  /// Ends the member that was begun; all its content must have been written.
  public mutating func finish(in buffer: inout [UInt8]) throws(CodecError) {
    precondition(isOpen, "no member was begun")
    guard missing == 0 else {
      throw CodecError(.unrepresentable, .tar, "\(missing) bytes less than the member's size")
    }
    isOpen = false
    if usesGNU { try gnu.finish(to: &buffer) } else { try ustar.finish(to: &buffer) }
  }

  /// Appends the two empty blocks that end an archive.
  public static func appendEnd(to buffer: inout [UInt8]) {
    buffer.append(contentsOf: repeatElement(0, count: TarMember.endSize))
  }

  /// Refuses what a tar header would change or cut off without a word.
  private static func check(_ member: TarMember) throws(CodecError) {
    let slash = UInt8(ascii: "/")
    guard let last = member.path.last, last != slash, !member.path.contains(0) else {
      throw CodecError(
        .unrepresentable, .tar, "a member's name is empty, ends with a slash or holds a NUL")
    }
    switch member.kind {
    case .file(let size):
      guard 0..<(1 << 33) ~= size else {
        throw CodecError(.unrepresentable, .tar, "a member of \(size) bytes")
      }
    case .symbolicLink(let target), .hardLink(let target):
      guard !target.isEmpty, !target.contains(0) else {
        throw CodecError(.unrepresentable, .tar, "a link's target is empty or holds a NUL")
      }
    case .directory: break
    case .other: throw CodecError(.unrepresentable, .tar, "neither file, directory nor link")
    }
  }
}
