import Testing

@testable import Codecs

/// Names that contain a NUL. libarchive would truncate them there, so that they could equal the
/// names of other members.
struct HeaderNamesTests {
  /// A stream that returns a limited number of bytes at a time.
  private final class Stream: ArchiveInput {
    private var rest: ArraySlice<UInt8>
    private let portion: Int

    init(_ bytes: [UInt8], portion: Int) { (rest, self.portion) = (bytes[...], portion) }

    let size: UInt64? = nil

    func read(into buffer: inout [UInt8]) -> Int {
      let part = rest.prefix(min(portion, buffer.count))
      buffer.replaceSubrange(0..<part.count, with: part)
      rest = rest.dropFirst(part.count)
      return part.count
    }

    func seek(to offset: UInt64) {}
  }

  private static let long = String(repeating: "n", count: 150)

  private func members(_ bytes: [UInt8], portion: Int) throws -> [ArchiveMember] {
    var reader = try ArchiveReader(Stream(bytes, portion: portion))
    var found: [ArchiveMember] = []
    while let member = try reader.next() { found.append(member) }
    return found
  }

  private func paths(_ members: [ArchiveMember]) -> [String] {
    members.map { String(decoding: $0.path ?? [], as: UTF8.self) }
  }

  /// Two formats of tar, pax records and GNU long names, each with content that fills several
  /// portions.
  @Test(arguments: ["PAX_FORMAT", "GNU_FORMAT"], [1000, 1 << 20])
  func namesInTarKeepNULs(format: String, portion: Int) throws {
    let script = """
      import io, sys, tarfile
      long = "n" * 150
      with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.\(format)) as tar:
        for name, type, link in [
            (long, tarfile.REGTYPE, ""), (long + "\\0more", tarfile.REGTYPE, ""),
            ("link", tarfile.SYMTYPE, long + "\\0to"), ("twin", tarfile.LNKTYPE, long + "\\0of"),
            ("plain", tarfile.REGTYPE, "")]:
          member = tarfile.TarInfo(name)
          member.type, member.linkname = type, link
          member.size = 700000 if type == tarfile.REGTYPE else 0
          tar.addfile(member, io.BytesIO(bytes(member.size)))
      """
    let made = try run(["python3", "-c", script])
    #expect(made.status == 0, "\(made.errors)")
    let found = try members(made.output, portion: portion)
    #expect(paths(found) == [Self.long, Self.long + "\0more", "link", "twin", "plain"])
    #expect(found[2].kind == .symbolicLink(target: Array((Self.long + "\0to").utf8)))
    #expect(found[3].kind == .hardLink(target: Array((Self.long + "\0of").utf8), size: 0))
  }

  @Test(arguments: [7, 1 << 20]) func namesInCpioKeepNULs(portion: Int) throws {
    var bytes: [UInt8] = []
    for (number, name) in ["a", "a\0b", "plain\0\0\0", "TRAILER!!!"].enumerated() {
      func hex(_ value: Int) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
      }
      let fields = [number + 1, 0o100644, 0, 0, 1, 0, 0, 0, 0, 0, 0, name.utf8.count + 1, 0]
      bytes += Array(("070701" + fields.map(hex).joined() + name + "\0").utf8)
      bytes += [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4)
    }
    let found = try paths(members(bytes, portion: portion))
    #expect(found == ["a", "a\0b", "plain"], "\(found)")
  }

  @Test(arguments: [7, 1 << 20]) func namesInAStreamedZipKeepNULs(portion: Int) throws {
    var writer = try ArchiveWriter(.zip)
    var bytes: [UInt8] = []
    for name in ["a", "aXb", "plain"] {
      try writer.begin(
        PaxMember(path: Array(name.utf8), kind: .file(size: 0), mode: 0o644), to: &bytes)
    }
    try writer.finish(to: &bytes)
    for range in bytes.ranges(of: Array("aXb".utf8)) { bytes[range.lowerBound + 1] = 0 }
    let found = try paths(members(bytes, portion: portion))
    #expect(found == ["a", "a\0b", "plain"], "\(found)")
  }
}
