import SandboxModel
import SystemIO
import TestSupport
import Testing

struct LogicalPathTests {
  @Test(arguments: [
    ("/apps/x", "absolute"), ("apps//x", "empty component"), ("apps/x/", "empty component"),
    ("apps/../x", "'..'"), ("..", "'..'"), ("apps/./x", "'.'"), ("a\0b", "NUL"),
  ])
  func refusesPathsThatCouldLeaveTheTree(path: String, reason: String) {
    let error = #expect(throws: ModelError.self) { try LogicalPath(ByteString(path)) }
    #expect(error?.code == .logicalPath)
    #expect(error?.reason.contains(reason) == true)
  }

  @Test func refusesUnsafePathsInContainers() throws {
    let container = LogicalContainer.data(LogicalName("com.example.app"))
    for inner: ByteString in ["..", "a/../../b", "/etc/passwd", "a//b", "a/", "a\0"] {
      #expect(throws: ModelError.self) { try LogicalPath(container, inner) }
    }
    #expect(try LogicalPath(container, "a/...").bytes == "apps/com.example.app/data/a/...")
  }

  @Test(arguments: [
    ("apps/com.a.b/data/Documents/x", LogicalContainer.data(LogicalName("com.a.b")), "Documents/x"),
    ("apps/com.a.b/data", .data(LogicalName("com.a.b")), ""),
    ("apps/com.a.b/bundle/B.app/Info.plist", .bundle(LogicalName("com.a.b")), "B.app/Info.plist"),
    ("apps/com.a.b/settings/x", .settings(LogicalName("com.a.b")), "x"),
    (
      "apps/com.a.b/extensions/com.a.b.share/data/tmp",
      .extension(LogicalName("com.a.b.share"), of: LogicalName("com.a.b")), "tmp"
    ),
    ("groups/group.com.a/x/y", .group(LogicalName("group.com.a")), "x/y"),
    ("folders/home/.bashrc", .folder(LogicalName("home")), ".bashrc"),
    ("apps/com.a.b~UUID/data/x", .data(LogicalName("com.a.b", instance: "UUID")), "x"),
    ("apps/~UUID/data/x", .data(LogicalName("", instance: "UUID")), "x"),
    ("apps/a%2Fb/data/%2F", .data(LogicalName("a/b")), "%2F"),
  ])
  func readsContainerAndInnerPath(path: String, container: LogicalContainer, inner: String) throws {
    let logical = try LogicalPath(ByteString(path))
    let location = try #require(logical.location)
    #expect(location.container == container)
    #expect(location.inner == ByteString(inner))
    #expect(try LogicalPath(location.container, location.inner) == logical)
  }

  @Test(arguments: [
    "", "apps", "apps/com.a", "apps/com.a/other", "apps/com.a/extensions", "groups",
    "apps/com.a/extensions/com.a.x", "apps/com.a/extensions/com.a.x/other", "else/x/y",
    "apps/a%2f/data", "apps/a%41/data", "apps/a%/data", "apps/a~/data", "apps/a~b~c/data",
    "groups/~",
  ])
  func pathsOutsideContainersNameNone(path: String) throws {
    #expect(try LogicalPath(ByteString(path)).location == nil)
  }

  @Test(arguments: 0..<500)
  func anyBytesAreEncodedAsOneComponent(seed: Int) throws {
    var random = Seeded(UInt64(seed))
    let name = LogicalName(
      Self.name(&random), instance: Bool.random(using: &random) ? Self.name(&random) : nil)
    let component = name.component
    #expect(!component.hasNUL && !component.bytes.contains(UInt8(ascii: "/")), "seed \(seed)")
    #expect(LogicalName(component: component) == name, "seed \(seed)")
    let inner = ByteString(
      (0..<3).map { _ in LogicalName(Self.name(&random)).component.bytes }
        .joined(separator: [UInt8(ascii: "/")]))
    for container in [
      LogicalContainer.data(name), .bundle(name), .settings(name), .group(name), .folder(name),
      .extension(LogicalName(Self.name(&random)), of: name),
    ] {
      let path = try LogicalPath(container, inner)
      #expect(path.location?.container == container, "seed \(seed)")
      #expect(path.location?.inner == inner, "seed \(seed)")
      #expect(try LogicalPath(path.bytes) == path)
    }
  }

  @Test func distinctNamesGiveDistinctComponents() {
    let names: [LogicalName] = [
      LogicalName("a~b"), LogicalName("a", instance: "b"), LogicalName("a%7Eb"), LogicalName("a%b"),
      LogicalName("."), LogicalName(".."), LogicalName("%2E"), LogicalName("a/b"),
      LogicalName("a%2Fb"), LogicalName("", instance: "a"), LogicalName("é"),
      LogicalName("e\u{301}"),
    ]
    #expect(Set(names.map(\.component)).count == names.count)
  }

  @Test func keepsNamesThatAreNotUTF8() throws {
    let inner = ByteString([0x61, 0x0a, 0xff, 0xfe, 0x2f, 0xe9])
    let path = try LogicalPath(.data(LogicalName("com.a")), inner)
    #expect(path.location?.inner == inner)
    #expect(path.description == "apps/com.a/data/a\\n\\xff\\xfe/\\xe9")
  }

  private static func name(_ random: inout Seeded) -> ByteString {
    let alphabet: [UInt8] = [0, 0x2f, 0x25, 0x7e, 0x2e, 0x0a, 0xff, 0x61, 0x32, 0x46]
    let count = Int.random(in: 1...4, using: &random)
    return ByteString(
      (0..<count).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &random)] })
  }
}
