import DeviceDiscovery
import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import AppPackages

/// Recognition and contents of app packages.
struct PackageTests {
  /// Makes an app with an extension, groups, a link, an empty directory and names that are not
  /// UTF-8.
  private func makeApp(in directory: TemporaryDirectory) throws -> ByteString {
    let app = ByteString("X.app")
    try directory.write(
      ZipBuilder.info(
        "com.example.x",
        [
          "CFBundleShortVersionString": "2.1", "CFBundleVersion": "42",
          "CFBundleExecutable": "X", "CFBundleDisplayName": "Ex",
        ]), at: app.appending("Info.plist"))
    let program = MachOBuilder(
      signature: MachOBuilder.entitlements(["group.com.example.x", "TEAM.*"]), padding: 300_000,
      isEncrypted: true)
    try directory.write(program.universal(is64: false), at: app.appending("X"))
    try directory.write(
      ZipBuilder.info("com.example.x.share", ["CFBundleVersion": "42", "CFBundleExecutable": "S"]),
      at: app.appending("PlugIns/S.appex/Info.plist"))
    let section = MachOBuilder(
      signature: MachOBuilder.entitlements([]),
      section: MachOBuilder.entitlements(["group.com.example.shared"]), padding: 500_000)
    try directory.write(section.thin(), at: app.appending("PlugIns/S.appex/S"))
    try directory.write([UInt8](repeating: 5, count: 70_000), at: app.appending("a b/ü.bin"))
    try directory.write([], at: app.appending("a b/empty"))
    let bundle = try directory.directory.directory(app)
    try bundle.createDirectory("void", permissions: 0o750)
    try bundle.createLink("link", to: "a b/../X")
    try bundle.directory("a b").createLink("up", to: "../void")
    return app
  }

  private func check(_ app: AppPackage, _ form: AppPackage.Origin.Form) throws {
    #expect(app.origin.form == form)
    #expect(app.identifier == BundleIdentifier("com.example.x"))
    #expect(app.bundleDirectory == "X.app")
    #expect(app.shape == .flat)
    #expect((app.displayName, app.version, app.build) == ("Ex", "2.1", "42"))
    #expect(app.extensions.map(\.identifier) == [BundleIdentifier("com.example.x.share")])
    #expect(app.extensions.map(\.build) == ["42"])
    #expect(app.extensions.map(\.path) == ["X.app/PlugIns/S.appex"])
    #expect(
      app.groups == [
        App.GroupMembership(
          group: try #require(BundleIdentifier("group.com.example.shared")), basis: .known(.section)
        ),
        App.GroupMembership(
          group: try #require(BundleIdentifier("group.com.example.x")), basis: .known(.signature)),
      ])
    #expect(app.hasKnownGroups)
    #expect(app.findings.map(\.code) == [.wrongValue, .encrypted])
    #expect(app.size.entries == 13)
  }

  @Test func directoryIsAPackage() throws {
    let directory = try TemporaryDirectory("app")
    let name = try makeApp(in: directory)
    let package = try Package(opening: directory.path(name))
    try check(package.app, .directory)
    let contents = try package.contents()
    let paths = contents.map(\.entry.path)
    #expect(paths == paths.sorted())
    #expect(paths.first == "X.app")
    let link = try #require(contents.first { $0.entry.path == "X.app/link" })
    #expect(link.entry.kind == .link(target: "a b/../X"))
    let void = try #require(contents.first { $0.entry.path == "X.app/void" })
    #expect(void.entry.kind == .directory && void.entry.permissions == 0o750)
    let bytes = contents.reduce(0) { $0 + $1.content.count }
    #expect(package.app.size.bytes == UInt64(bytes))
    // Through a link, it is the same package with its own name.
    try directory.directory.createLink("other", to: name)
    #expect(try Package(opening: directory.path("other")).app.bundleDirectory == "X.app")
  }

  /// However an archive of the directory was packed, it is the same app, entry for entry.
  @Test(arguments: ["stored", "deflated", "links followed by directories"])
  func archiveEqualsTheDirectory(way: String) throws {
    let directory = try TemporaryDirectory("ipa")
    _ = try makeApp(in: directory)
    let script = """
      import os, stat, sys, zipfile
      way, out = sys.argv[1:]
      method = zipfile.ZIP_STORED if way == "stored" else zipfile.ZIP_DEFLATED
      found = [(d, n) for d, f, l in os.walk("X.app") for n in f + l] + [("", "X.app")]
      found.sort(reverse=way.startswith("links"))
      with zipfile.ZipFile(out, "w", method) as z:
          for d, n in found:
              path = os.path.join(d, n)
              status = os.lstat(path)
              info = zipfile.ZipInfo("Payload/" + path, (2025, 1, 2, 3, 4, 6))
              info.external_attr = status.st_mode << 16
              info.compress_type = method
              if stat.S_ISDIR(status.st_mode):
                  info.filename += "/"
                  z.writestr(info, b"")
              elif stat.S_ISLNK(status.st_mode):
                  z.writestr(info, os.readlink(path))
              else:
                  with open(path, "rb") as f: z.writestr(info, f.read())
          z.writestr("iTunesMetadata.plist", "beside")
      """
    let made = try Program.run(
      "python3", ["-c", script, way, directory.string + "/x.ipa"], in: directory.url)
    #expect(made.code == 0, "\(made.errors)")
    let package = try Package(opening: directory.path("x.ipa"))
    try check(package.app, .archive)
    let archived = try package.contents().sorted { $0.entry.path < $1.entry.path }
    let plain = try Package(opening: directory.path("X.app")).contents(piece: 1 << 20)
    #expect(archived.map(\.entry.path) == plain.map(\.entry.path))
    #expect(archived.map(\.entry.kind) == plain.map(\.entry.kind))
    #expect(archived.map(\.entry.permissions) == plain.map(\.entry.permissions))
    #expect(archived.map(\.content) == plain.map(\.content))
    #expect(archived.allSatisfy { $0.entry.modified.seconds == 1_735_787_046 })
    var above: Set<ByteString> = [""]
    for entry in try package.contents().map(\.entry) {
      #expect(above.contains(entry.path.parent))
      if entry.kind == .directory { above.insert(entry.path) }
    }
  }

  /// An archive made by a real program, and a zip file that contains the bundle directly.
  @Test(.enabled(if: Program.exists("bsdtar"))) func archiveOfAnotherProgramIsAPackage() throws {
    let directory = try TemporaryDirectory("zip")
    _ = try makeApp(in: directory)
    let made = try Program.run(
      "bsdtar", ["-c", "-f", "x.zip", "--format", "zip", "X.app"], in: directory.url)
    #expect(made.code == 0, "\(made.errors)")
    let package = try Package(opening: directory.path("x.zip"))
    try check(package.app, .archive)
    let plain = try Package(opening: directory.path("X.app")).contents()
    let archived = try package.contents().sorted { $0.entry.path < $1.entry.path }
    #expect(archived.map(\.content) == plain.map(\.content))
    #expect(archived.map(\.entry.kind) == plain.map(\.entry.kind))
  }

  /// Names that are not UTF-8 keep their bytes.
  @Test func namesKeepTheirBytes() throws {
    let directory = try TemporaryDirectory("bytes")
    var entry = ZipBuilder.Entry("", [1, 2, 3])
    entry.name = Array("Payload/X.app/".utf8) + [0xff, 0xfe, 0x80]
    let package = try Package.open(ZipBuilder.app([entry]).bytes(), in: directory)
    let last = try #require(try package.contents().last)
    #expect(Array(last.entry.path.bytes) == Array("X.app/".utf8) + [0xff, 0xfe, 0x80])
    #expect(last.content == [1, 2, 3])
    var flagged = ZipBuilder.Entry("Payload/X.app/caf\u{e9}", [4])
    flagged.flags = 1 << 11
    let other = try Package.open(ZipBuilder.app([flagged]).bytes(), in: directory)
    #expect(try other.contents().last?.entry.path == "X.app/caf\u{e9}")
  }

  /// Changes by another program after the check are detected.
  @Test func concurrentChangesAreDetected() throws {
    let directory = try TemporaryDirectory("changes")
    _ = try makeApp(in: directory)
    let package = try Package(opening: directory.path("X.app"))
    try directory.write([1], at: "X.app/a b/ü.bin")
    #expect(throws: ModelError.self) { try package.contents() }
    let swapped = try Package(opening: directory.path("X.app"))
    let bundle = try directory.directory.directory("X.app")
    try bundle.remove("X")
    try bundle.createLink("X", to: "/etc/passwd")
    #expect(throws: ModelError.self) { try swapped.contents() }
  }

  @Test func otherFilesAreNotPackages() throws {
    let directory = try TemporaryDirectory("none")
    try directory.write([1], at: "Other/a")
    func reason(_ name: ByteString) -> String? {
      do {
        _ = try Package(opening: directory.path(name))
        return nil
      } catch {
        return error.reason
      }
    }
    #expect(reason("Other")?.contains(".app") == true)
    #expect(reason("Other/a")?.contains("not a zip archive") == true)
    #expect(reason("missing")?.contains("no such file") == true)
    try directory.directory.createSpecial("fifo", kind: .fifo, permissions: 0o600)
    #expect(reason("fifo")?.contains("neither") == true)
    try directory.write(ZipBuilder.info("com.example.y"), at: "Y.app/Info.plist")
    try directory.directory.directory("Y.app").createSpecial(
      "pipe", kind: .fifo, permissions: 0o600)
    #expect(reason("Y.app")?.contains("not a file") == true)
  }
}

/// macOS apps: their bundle layout, and data that is migrated into their container.
struct MacPackageTests {
  private func app(_ migration: String) -> ZipBuilder {
    let list =
      "<plist><dict><key>Move</key><array><string>\(migration)</string></array></dict></plist>"
    return ZipBuilder([
      .init(
        "X.app/Contents/Info.plist", ZipBuilder.info("com.example.x", ["CFBundleExecutable": "X"])),
      .init(
        "X.app/Contents/MacOS/X",
        MachOBuilder(signature: MachOBuilder.entitlements(["ABCDE12345.com.example"])).thin(),
        mode: 0o100755),
      .init("X.app/Contents/Resources/container-migration.plist", Array(list.utf8)),
      .init(
        "X.app/Contents/PlugIns/S.appex/Contents/Info.plist", ZipBuilder.info("org.other.share")),
    ])
  }

  @Test func macOSBundleLayoutIsRead() throws {
    let directory = try TemporaryDirectory("mac")
    let package = try Package.open(app("${Library}/Ex/${BundleId}").bytes(), in: directory)
    #expect(package.app.shape == .contents)
    #expect(package.app.groups.map(\.group) == [BundleIdentifier("ABCDE12345.com.example")])
    #expect(package.app.extensions.map(\.path) == ["X.app/Contents/PlugIns/S.appex"])
    let path: ByteString = "Library/Ex/com.example.x"
    #expect(
      package.app.migration
        == ContainerMigration(moves: [.init(source: path, destination: path)]))
    // An extension that is not named after its app is only a finding.
    #expect(package.app.findings.map(\.code) == [.contradiction])
  }

  @Test func invalidMigrationsAreReported() throws {
    let directory = try TemporaryDirectory("mac")
    let package = try Package.open(app("${Library}/../..").bytes(), in: directory)
    #expect(package.app.migration == nil)
    #expect(package.app.findings.map(\.code) == [.contradiction, .unusableFile])
  }
}
