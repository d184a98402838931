import Foundation
import SystemIO
import TestSupport
import Testing

/// Devices with wrong records: each app is still found, reported, and backed up.
struct OddDeviceTests {
  private static let notebook = "org.example.notebook"
  private static let metadata: ByteString = ".com.apple.mobile_container_manager.metadata.plist"

  /// A sample device and the paths of its containers.
  private struct Sample {
    let cli: CommandLine

    init() throws {
      cli = try CommandLine()
      _ = try cli.succeed("sample device")
    }

    func path(_ container: ByteString) throws -> ByteString {
      let found = try cli.containers(of: "device").first { $0.path == container }
      return try #require(found, "\(container)").realPath
    }

    func infoPlist() throws -> ByteString {
      try path("apps/org.example.notebook/bundle").appending("Notebook.app/Info.plist")
    }

    func findings() throws -> [(code: String, path: String, reason: String)] {
      let findings = try cli.json("apps --json --root device")["findings"] as? [[String: Any]]
      return (findings ?? []).map { finding in
        (
          finding["code"] as? String ?? "", finding["path"] as? String ?? "",
          finding["reason"] as? String ?? ""
        )
      }
    }

    /// Expects the device to be backed up and restored despite its peculiarities.
    func expectBackup() throws {
      _ = try cli.succeed("init repo --plain")
      _ = try cli.succeed("backup --root device --repo repo")
      _ = try cli.succeed("restore latest --to back --repo repo")
      try PolicyComparison.expectRestored(cli, device: "device", back: "back")
    }
  }

  private static func write(_ bytes: [UInt8], to path: ByteString) throws {
    let directory = try Directory.open(path: path.directoryPath)
    let file = try directory.openOrCreate(path.lastComponent ?? "")
    try file.truncate(to: 0)
    try file.write(bytes)
  }

  private static func list(_ members: String) -> [UInt8] {
    Array(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
      "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">\(members)</plist>

      """.utf8)
  }

  @Test(arguments: [
    ("garbage", Array("\u{1}garbage".utf8), "unusable-file"), ("empty", [], "unusable-file"),
    ("an array", list("<array><string>x</string></array>"), "wrong-value"),
    (
      "another type", list("<dict><key>CFBundleIdentifier</key><integer>7</integer></dict>"),
      "wrong-value"
    ),
    ("cut off", Array("bplist00\u{1}".utf8), "unusable-file"),
  ])
  func invalidInfoPlistIsReported(_ what: String, _ bytes: [UInt8], _ code: String) throws {
    let sample = try Sample()
    let path = try sample.infoPlist()
    try Self.write(bytes, to: path)
    let found = try sample.findings().filter { $0.path.hasSuffix("Notebook.app/Info.plist") }
    #expect(found.map(\.code) == [code])
    let text = try sample.cli.run("apps --root device --findings")
    #expect(text.code == 0)
    #expect(text.output.contains("Notebook.app/Info.plist"))
    // Its containers still name their app.
    #expect(text.output.contains(Self.notebook))
    try sample.expectBackup()
  }

  @Test func oversizedInfoPlistIsNotRead() throws {
    let sample = try Sample()
    let path = try sample.infoPlist()
    let directory = try Directory.open(path: path.directoryPath)
    try directory.openOrCreate("Info.plist").truncate(to: 100 << 20)
    let found = try sample.findings().filter { $0.path.hasSuffix("Notebook.app/Info.plist") }
    #expect(found.map(\.code) == ["unusable-file"])
    #expect(found.first?.reason.contains("104857600") == true)
    try sample.expectBackup()
  }

  @Test func bothContainersOfOneAppAreIncluded() throws {
    let sample = try Sample()
    let reader = try sample.path("apps/org.example.reader/data")
    let uuid = try #require(reader.lastComponent)
    try Self.write(
      Self.list(
        """
        <dict><key>MCMMetadataIdentifier</key><string>\(Self.notebook)</string>
        <key>MCMMetadataContentClass</key><integer>2</integer></dict>
        """), to: reader.appending(Self.metadata))
    #expect(try sample.findings().map(\.code).contains("claimed-twice"))
    let paths = try sample.cli.containers(of: "device").map(\.path)
    let claims = paths.filter { path in
      path.components.last == "data" && path.components[1].description.hasPrefix(Self.notebook)
        && path.components.count == 3
    }
    #expect(claims.count == 2)
    let other = try #require(claims.first { $0 != "apps/org.example.notebook/data" })
    #expect(other.components[1].description.hasPrefix("org.example.notebook~"))
    let odd = try sample.cli.run("apps --root device --findings")
    #expect(odd.code == 0)
    #expect(odd.output.contains("both are included"))
    #expect(odd.output.contains(uuid.description) || other.description.contains(uuid.description))
    try sample.expectBackup()
  }

  @Test func metadataOfAnotherAppIsReported() throws {
    let sample = try Sample()
    let bundle = try sample.path("apps/org.example.notebook/bundle")
    try Self.write(
      Self.list(
        """
        <dict><key>MCMMetadataIdentifier</key><string>com.example.stranger</string>
        <key>MCMMetadataContentClass</key><integer>1</integer></dict>
        """), to: bundle.appending(Self.metadata))
    #expect(try sample.findings().map(\.code).contains("contradiction"))
    #expect(try sample.path("apps/org.example.notebook/bundle") == bundle)
    try sample.expectBackup()
  }

  @Test func unreadableMetadataIsReplacedByAGuess() throws {
    let sample = try Sample()
    let data = try sample.path("apps/org.example.notebook/data")
    try Self.write(Array("not a list".utf8), to: data.appending(Self.metadata))
    #expect(try sample.findings().map(\.code).contains("unusable-file"))
    let found = try sample.cli.containers(of: "device").first { $0.realPath == data }
    #expect(found?.json["identified_by"] as? String == "preferences")
    try sample.expectBackup()
  }
}
