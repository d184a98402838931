import SandboxModel
import SystemIO
import TestSupport
import Testing

/// Unsafe packages are refused by name before anything is unpacked.
struct RefusalTests {
  typealias Entry = ZipBuilder.Entry

  @Test(arguments: [
    ("/etc/passwd", "absolute"), ("Payload/X.app/../../../x", "'..'"), ("../x", "'..'"),
    ("Payload/X.app/./x", "'.'"), ("Payload//X.app/x", "empty component"),
    ("Payload/X.app/a\u{0}b", "NUL"), ("Payload/X.app/..\\..\\x", "backslash"),
    ("Payload/X.app/" + String(repeating: "n", count: 256), "255 bytes"),
    ("Payload/X.app/" + String(repeating: "d/", count: 80) + "f", "directories deep"),
  ])
  func unsafeNamesAreRefused(name: String, reason: String) throws {
    let error = try #require(try refusal(of: ZipBuilder.app([Entry(name, [1])]).bytes()))
    #expect(error.code == .unsafePackage)
    #expect(error.reason.contains(reason), "\(error)")
    #expect(error.hint != nil)
    #expect(error.subject?.lastComponent == "x.ipa")
  }

  /// Entries next to the bundle are not unpacked, but their names are checked.
  @Test func unsafeNamesBesideTheBundleAreRefused() throws {
    for name in ["Symbols/../../x", "/x", "META-INF/..", ""] {
      var entry = Entry(name, [1])
      entry.name = Array(name.utf8)
      #expect(try refusal(of: ZipBuilder.app([entry]).bytes())?.code == .unsafePackage, "\(name)")
    }
    #expect(try refusal(of: ZipBuilder.app([Entry("iTunesMetadata.plist", [1])]).bytes()) == nil)
  }

  @Test(arguments: [
    "/etc", "../../../etc", "..", "a/../../..", "../X.app/x", "there/../../..",
    String(repeating: "l", count: 4096), "",
  ])
  func linksThatLeaveTheBundleAreRefused(target: String) throws {
    let bytes = ZipBuilder.app([
      Entry("Payload/X.app/there", Array("a/b".utf8), mode: 0o120777),
      Entry("Payload/X.app/a/b/file", [1]),
      Entry("Payload/X.app/l", Array(target.utf8), mode: 0o120777),
    ]).bytes()
    let error = try #require(try refusal(of: bytes), "\(target)")
    #expect([.unsafePackage, .package].contains(error.code))
    #expect(error.reason.contains("link"), "\(error)")
  }

  /// Links that stay inside are accepted, including links through other links and to missing
  /// targets.
  @Test func linksInsideTheBundleAreAccepted() throws {
    let bytes = ZipBuilder.app([
      Entry("Payload/X.app/deep/er/l", Array("../../f".utf8), mode: 0o120777),
      Entry("Payload/X.app/there", Array("deep/er".utf8), mode: 0o120777),
      Entry("Payload/X.app/m", Array("there/../../f".utf8), mode: 0o120777),
      Entry("Payload/X.app/nothing", Array("not/there".utf8), mode: 0o120777),
    ]).bytes()
    #expect(try refusal(of: bytes) == nil)
  }

  /// The kernel resolves `there/..` to `deep`, not to the bundle: one more '..' leaves the bundle.
  @Test func linksThroughLinksAreResolved() throws {
    let bytes = ZipBuilder.app([
      Entry("Payload/X.app/a/b/there", Array("../..".utf8), mode: 0o120777),
      Entry("Payload/X.app/out", Array("a/b/there/..".utf8), mode: 0o120777),
    ]).bytes()
    #expect(try refusal(of: bytes)?.reason.contains("outside the bundle") == true)
    let circle = ZipBuilder.app([
      Entry("Payload/X.app/a", Array("b".utf8), mode: 0o120777),
      Entry("Payload/X.app/b", Array("a".utf8), mode: 0o120777),
    ]).bytes()
    #expect(try refusal(of: circle)?.reason.contains("40 links") == true)
  }

  @Test func entriesBelowLinksAndFilesAreRefused() throws {
    for (mode, word): (UInt32, String) in [
      (0o120777, "which is a link"), (0o100644, "which is a file"),
    ] {
      for isFirst in [true, false] {
        let above = Entry("Payload/X.app/a", Array("b".utf8), mode: mode)
        let below = Entry("Payload/X.app/a/f", [1])
        let bytes = ZipBuilder.app(isFirst ? [above, below] : [below, above]).bytes()
        #expect(try refusal(of: bytes)?.reason.contains(word) == true)
      }
    }
  }

  @Test(arguments: [0o010644, 0o020644, 0o060644, 0o140644] as [UInt32])
  func devicesAndFIFOsAreRefused(mode: UInt32) throws {
    let bytes = ZipBuilder.app([Entry("Payload/X.app/d", mode: mode)]).bytes()
    #expect(try refusal(of: bytes)?.reason.contains("not a file, directory or link") == true)
  }

  @Test func duplicateNamesAreRefused() throws {
    let twice = ZipBuilder.app([Entry("Payload/X.app/f", [1]), Entry("Payload/X.app/f", [2])])
    #expect(try refusal(of: twice.bytes())?.reason.contains("twice") == true)
    let asDirectory = ZipBuilder.app([
      Entry("Payload/X.app/f", [1]), Entry("Payload/X.app/f/", mode: 0o040755),
    ])
    #expect(try refusal(of: asDirectory.bytes())?.reason.contains("twice") == true)
  }

  /// macOS apps are installed on volumes that ignore case and normalize Unicode; iOS apps are not.
  @Test(arguments: [("Read.txt", "read.TXT"), ("caf\u{e9}", "cafe\u{301}")])
  func duplicateNamesOnAMacAreRefused(one: String, other: String) throws {
    let plain = ZipBuilder.app([
      Entry("Payload/X.app/" + one, [1]), Entry("Payload/X.app/" + other, [2]),
    ])
    #expect(try refusal(of: plain.bytes()) == nil)
    let mac = ZipBuilder([
      Entry("X.app/Contents/Info.plist", ZipBuilder.info("com.example.x")),
      Entry("X.app/Contents/" + one, [1]), Entry("X.app/Contents/" + other, [2]),
    ])
    #expect(try refusal(of: mac.bytes())?.reason.contains("same name on a Mac") == true)
  }

  @Test func packagesWithoutOneBundleAreRefused() throws {
    let two = ZipBuilder.app([Entry("Payload/Y.app/Info.plist", ZipBuilder.info("com.example.y"))])
    #expect(try refusal(of: two.bytes())?.reason.contains("2 apps") == true)
    let beside = ZipBuilder.app([Entry("Y.app/Info.plist", ZipBuilder.info("com.example.y"))])
    #expect(try refusal(of: beside.bytes())?.reason.contains("2 apps") == true)
    #expect(
      try refusal(of: ZipBuilder([Entry("a", [1])]).bytes())?.reason.contains("no app") == true)
    let none = ZipBuilder([Entry("Payload/X.app/a", [1])])
    #expect(try refusal(of: none.bytes())?.reason.contains("no Info.plist") == true)
    let file = ZipBuilder([Entry("Payload/X.app", [1])])
    #expect(try refusal(of: file.bytes())?.reason.contains("not a directory") == true)
  }

  @Test(arguments: [
    ("", "CFBundleIdentifier"), ("a/b", "contains a '/'"), ("$(PRODUCT)", "variable"),
    ("a..b", "an empty part"), (".", "it is '.'"),
    (String(repeating: "a", count: 156), "156 bytes"),
  ])
  func invalidIdentifiersAreRefused(identifier: String, reason: String) throws {
    let bytes = ZipBuilder([Entry("X.app/Info.plist", ZipBuilder.info(identifier))]).bytes()
    let error = try #require(try refusal(of: bytes))
    #expect(error.code == .package)
    #expect(error.reason.contains(reason), "\(error)")
    let inner = ZipBuilder.app([
      Entry("Payload/X.app/PlugIns/S.appex/Info.plist", ZipBuilder.info(identifier))
    ]).bytes()
    #expect(try refusal(of: inner)?.reason.contains(reason) == true)
  }

  @Test func invalidPropertyListsAreRefused() throws {
    for list in [[], Array("<plist><array/></plist>".utf8), [UInt8](repeating: 0xff, count: 100)] {
      let bytes = ZipBuilder([Entry("X.app/Info.plist", list)]).bytes()
      #expect(try refusal(of: bytes)?.reason.contains("cannot be used") == true)
    }
  }
}
