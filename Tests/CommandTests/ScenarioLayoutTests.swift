import Foundation
import SystemIO
import TestSupport
import Testing

/// Scenarios on copies of devices with layouts other than the simulator's.
struct ScenarioLayoutTests {
  /// A device with one app: its root, a document and a cache, as real and logical paths.
  struct Device: Sendable, CustomTestStringConvertible {
    let layout: String
    let root: String
    let document: (real: String, logical: String)
    let cache: (real: String, logical: String)

    var testDescription: String { layout }
  }

  private static let devices = [
    Device(
      layout: "flatpak", root: "home/.var/app",
      document: ("org.a.Notes/data/notes/a.txt", "apps/org.a.Notes/data/data/notes/a.txt"),
      cache: ("org.a.Notes/cache/big/x", "apps/org.a.Notes/data/cache/big/x")),
    Device(
      layout: "snap", root: "home/snap", document: ("notes/2/a.txt", "apps/notes/revision/a.txt"),
      cache: ("notes/common/.cache/x", "apps/notes/data/.cache/x")),
    Device(
      layout: "macos", root: "mac",
      document: (
        "Library/Containers/org.a.Notes/Data/Documents/a.txt",
        "apps/org.a.Notes/data/Documents/a.txt"
      ),
      cache: (
        "Library/Containers/org.a.Notes/Data/Library/Caches/x",
        "apps/org.a.Notes/data/Library/Caches/x"
      )),
  ]

  private func make(_ device: Device, _ cli: CommandLine) throws {
    for (path, text) in [(device.document.real, "old"), (device.cache.real, "cached")] {
      try cli.directory.write(text, at: ByteString("\(device.root)/\(path)"))
    }
    if device.layout == "snap" {
      try Directory.open(path: cli.directory.path("home/snap/notes"))
        .createLink("current", to: "2")
    }
    if device.layout == "macos" {
      try cli.directory.write(
        """
        <plist><dict><key>MCMMetadataIdentifier</key><string>org.a.Notes</string></dict></plist>
        """,
        at: "mac/Library/Containers/org.a.Notes/.com.apple.containermanagerd.metadata.plist")
    }
  }

  @Test(arguments: devices)
  func dataSurvivesABackupAPurgeAndARestore(_ device: Device) throws {
    let cli = try CommandLine(inMemory: true)
    try make(device, cli)
    let (document, cache) = (device.document.logical, device.cache.logical)
    try cli.directory.write(
      """
      scenario: data survives
      schema: 1
      device: {root: \(device.root), layout: \(device.layout)}
      steps:
        - write: {path: \(document), text: new}
        - backup: {name: evening, as: keep}
        - write: {path: \(document), text: lost}
        - restore: {to: in-place, snapshot: evening}
        - expect:
            - {match: \(document), same-bytes: evening, keep: {class: user-data, backup: always}}
            - {match: \(cache), exists: true, class: cache, keep: {backup: never}}
        - purge: {level: critical}
        - expect:
            - {match: \(cache), vanished: beginning}
            - {match: \(document), survived: evening}
        - restore: {to: new-device, snapshot: evening}
        - expect:
            - {match: \(document), same-bytes: evening}
            - {match: \(cache), exists: false}

      """, at: "x.yaml")
    let outcome = try cli.run("scenario run x.yaml")
    #expect(outcome.output == "passed  data survives (now)\n1 case: 1 passed\n", "\(outcome)")
    // The device itself is only read.
    let real = { (path: String) in ByteString("\(device.root)/\(path)") }
    #expect(try cli.directory.read(real(device.document.real)) == Array("old".utf8))
    #expect(try cli.directory.read(real(device.cache.real)) == Array("cached".utf8))
    // A wrong expectation fails, which shows that the others are checked.
    try cli.directory.write(
      """
      scenario: wrong
      schema: 1
      device: {root: \(device.root), layout: \(device.layout)}
      steps:
        - purge: {level: critical}
        - expect: [{match: \(cache), survived: beginning}]

      """, at: "wrong.yaml")
    #expect(try cli.run("scenario run wrong.yaml").code == 5)
  }
}
