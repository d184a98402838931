import Codecs
import Foundation
import Testing

struct PaxTests {
  private static func text(_ text: String) -> [UInt8] { Array(text.utf8) }

  private static func archive(_ members: [(PaxMember, [UInt8])]) -> [UInt8] {
    var bytes: [UInt8] = []
    for (member, content) in members {
      bytes += member.header() + content
      bytes += [UInt8](repeating: 0, count: PaxMember.padding(after: UInt64(content.count)))
    }
    return bytes + PaxMember.end
  }

  /// Members of every kind, with values that need an extended header and values that do not.
  private static let members: [(PaxMember, [UInt8])] = {
    var plain = PaxMember(path: text("a file"), kind: .file(size: 3), mode: 0o640)
    (plain.owner, plain.group, plain.modified) = (1000, 100, 1_700_000_000)
    (plain.userName, plain.groupName) = ("owner", "users")
    var fine = PaxMember(path: text("nanoseconds"), kind: .file(size: 0), mode: 0o4755)
    (fine.modified, fine.nanoseconds) = (1_700_000_000, 7)
    var old = PaxMember(path: text("before 1970"), kind: .file(size: 0), mode: 0o644)
    (old.modified, old.nanoseconds) = (-2, 500_000_000)
    var far = PaxMember(path: text("large numbers"), kind: .file(size: 0), mode: 0o644)
    (far.owner, far.group, far.modified) = (4_000_000_000, 2_097_152, 1 << 40)
    var marked = PaxMember(path: text("attributes"), kind: .file(size: 0), mode: 0o644)
    marked.attributes = [.init(name: text("user.mark"), value: [0, 0x0a, 0xff, 0x3d])]
    let long = text(String(repeating: "long name ", count: 25))
    let deep = text(String(repeating: "d/", count: 300) + "end")
    return [
      (plain, text("one")), (fine, []), (old, []), (far, []), (marked, []),
      (PaxMember(path: long, kind: .file(size: 0), mode: 0o644), []),
      (PaxMember(path: deep, kind: .directory, mode: 0o755), []),
      (PaxMember(path: text("bytes \u{ff}") + [0xff], kind: .file(size: 0), mode: 0o644), []),
      (PaxMember(path: text("link"), kind: .symbolicLink(target: long), mode: 0o777), []),
      (PaxMember(path: text("hard"), kind: .hardLink(target: text("a file")), mode: 0o640), []),
      (PaxMember(path: text("pipe"), kind: .fifo, mode: 0o600), []),
      (PaxMember(path: text("c"), kind: .characterDevice(major: 5, minor: 1), mode: 0o600), []),
      (PaxMember(path: text("b"), kind: .blockDevice(major: 8, minor: 300), mode: 0o600), []),
    ]
  }()

  /// A valid ACL is also written as text. One that is invalid or contradicts the mode is written
  /// only as an attribute.
  @Test func accessListsAreAlsoWrittenAsText() {
    let list: [UInt8] =
      [2, 0, 0, 0] + [1, 0, 6, 0, 255, 255, 255, 255] + [2, 0, 5, 0, 232, 3, 0, 0]
      + [4, 0, 4, 0, 255, 255, 255, 255] + [8, 0, 0, 0, 0, 0, 0, 1]
      + [16, 0, 7, 0, 255, 255, 255, 255] + [32, 0, 1, 0, 255, 255, 255, 255]
    func header(_ value: [UInt8], _ name: String = "default", mode: UInt16 = 0o755) -> String {
      var member = PaxMember(path: Self.text("x"), kind: .directory, mode: mode)
      member.attributes = [.init(name: Self.text("system.posix_acl_\(name)"), value: value)]
      return String(decoding: member.header(), as: UTF8.self)
    }
    let text =
      "SCHILY.acl.default=user::rw-,user:1000:r-x,group::r--,group:16777216:---,mask::rwx,"
      + "other::--x\n"
    #expect(header(list).contains(text))
    #expect(header(list, "access", mode: 0o1671).contains("SCHILY.acl.access=user::rw-,user:1000"))
    for mode: UInt16 in [0o771, 0o641, 0o670] {
      #expect(!header(list, "access", mode: mode).contains("SCHILY.acl"))
    }
    let invalid: [[UInt8]] = [
      [], [2, 0, 0, 0], [3] + list.dropFirst(), Array(list.dropLast()), [0, 0],
    ]
    for value in invalid {
      #expect(!header(value).contains("SCHILY.acl"))
    }
  }

  @Test(arguments: ["tar", "bsdtar"], ["C", "C.UTF-8"])
  func isListedWithoutMessages(program: String, locale: String) throws {
    let archive = Self.archive(Self.members)
    let list = try run(["env", "LC_ALL=" + locale, program, "-tvf", "-"], input: archive)
    #expect(list.status == 0 && list.errors == "", "\(list.errors)")
    #expect(list.output.split(separator: 0x0A).count == Self.members.count)
  }

  /// Python's reader finds the right value of each field.
  @Test func everyFieldIsRead() throws {
    let script = """
      import sys, tarfile
      for m in tarfile.open(fileobj=sys.stdin.buffer, mode="r|", encoding="utf-8",
          errors="surrogateescape"):
        print(m.type.decode(), oct(m.mode), m.uid, m.gid, m.uname, m.gname, m.size,
          repr(float(m.mtime)), m.devmajor, m.devminor, len(m.name), len(m.linkname), sep="|")
      """
    let result = try run(["python3", "-c", script], input: Self.archive(Self.members))
    #expect(result.status == 0, "\(result.errors)")
    let lines = String(decoding: result.output, as: UTF8.self).split(separator: "\n")
    #expect(
      lines.map(String.init) == [
        "0|0o640|1000|100|owner|users|3|1700000000.0|0|0|6|0",
        "0|0o4755|0|0|||0|1700000000.0|0|0|11|0", "0|0o644|0|0|||0|-1.5|0|0|11|0",
        "0|0o644|4000000000|2097152|||0|1099511627776.0|0|0|13|0",
        "0|0o644|0|0|||0|0.0|0|0|10|0", "0|0o644|0|0|||0|0.0|0|0|250|0",
        "5|0o755|0|0|||0|0.0|0|0|603|0", "0|0o644|0|0|||0|0.0|0|0|8|0",
        "2|0o777|0|0|||0|0.0|0|0|4|250", "1|0o640|0|0|||0|0.0|0|0|4|6",
        "6|0o600|0|0|||0|0.0|0|0|4|0", "3|0o600|0|0|||0|0.0|5|1|1|0",
        "4|0o600|0|0|||0|0.0|8|300|1|0",
      ])
  }

  @Test func namesTimesAndAttributesAreExtracted() throws {
    let directory = try TemporaryDirectory()
    let files = Self.members.filter { if case .file = $0.0.kind { true } else { false } }
    let result = try run(
      ["tar", "-x", "--xattrs", "--no-same-owner", "--warning=no-timestamp", "-f", "-"],
      input: Self.archive(files),
      directory: directory.path)
    #expect(result.status == 0 && result.errors == "", "\(result.errors)")
    let times = try run(
      ["stat", "-c", "%.9Y", "nanoseconds", "before 1970"], directory: directory.path)
    #expect(times.output == Self.text("1700000000.000000007\n-1.500000000\n"))
    let value = try run(
      ["getfattr", "--only-values", "-n", "user.mark", "attributes"], directory: directory.path)
    #expect(value.status == 0 && value.output == [0, 0x0a, 0xff, 0x3d], "\(value.errors)")
    let found = try run(["find", ".", "-type", "f", "-print0"], directory: directory.path)
    #expect(
      Set(found.output.split(separator: 0).map { Array($0.dropFirst(2)) })
        == Set(files.map(\.0.path)))
  }

  /// A size above 8 GiB is in the extended header, whose records include their own length.
  @Test func largeSizeIsInTheExtendedHeader() {
    let member = PaxMember(path: Self.text("large"), kind: .file(size: 1 << 40), mode: 0o644)
    let header = member.header()
    #expect(header.count == 3 * 512)
    let record = Self.text("22 size=1099511627776\n")
    #expect(Array(header[512..<(512 + record.count)]) == record)
    #expect(record.count == 22)
    #expect(PaxMember.padding(after: 1 << 40) == 0 && PaxMember.padding(after: 513) == 511)
  }

  /// Lengths near a power of ten, where the digits of the length affect the length.
  @Test func recordLengthsIncludeTheirDigits() throws {
    for count in 70...120 {
      var member = PaxMember(path: Self.text("x"), kind: .fifo, mode: 0o644)
      let value = [UInt8](repeating: UInt8(ascii: "v"), count: count)
      member.attributes = [.init(name: Self.text("n"), value: value)]
      let header = member.header()
      let digits = header[512...].prefix { $0 != 0x20 }
      let length = try #require(Int(String(decoding: digits, as: UTF8.self)))
      #expect(header[512 + length - 1] == 0x0a && header[512 + length] == 0)
      #expect(header[512 + length - 2] == UInt8(ascii: "v"))
    }
  }
}
