import Foundation
import SystemIO
import TestSupport
import Testing

/// Backups of `export android` that third-party programs read, and one that another program packed.
@Suite(.enabled(if: Peers.areInstalled)) struct AndroidPeersTests {
  private let cli: CommandLine

  private static let password = "the right password"
  private static let packages = ["com.example.notes", "org.example.caf"]
  /// The domains of a package's files: the directories on the device, and those in the format.
  private static let domains = [
    ("files", "f"), ("databases", "db"), ("shared_prefs", "sp"), ("app_webview", "r/app_webview"),
  ]

  /// Makes a snapshot of a device with two apps.
  init() throws {
    cli = try CommandLine()
    var random = Seeded(22)
    for package in Self.packages {
      let data = ByteString("phone/data/data/\(package)")
      for (name, _) in Self.domains {
        let directory = data.appending(ByteString(name))
        // Sizes around a block of the archive and of the cipher.
        for size in [0, 1, 15, 16, 17, 511, 512, 513] {
          try cli.directory.write(
            random.bytes(size), at: directory.appending(ByteString("\(size)")))
        }
        try cli.directory.write(
          [1], at: directory.appending("it's a \"caf\u{e9}\"\n100%_\u{1f3f4}"))
        try cli.directory.write([2], at: directory.appending("trailing /back\\slash"))
      }
      let long = String(repeating: "directory/", count: 20) + String(repeating: "n", count: 200)
      try cli.directory.write([3], at: data.appending(ByteString("files/" + long)))
      try cli.directory.write(random.bytes(5_000_001), at: data.appending("files/large"))
    }
    try cli.directory.write(Self.password + "\n", at: "password")
    try cli.directory.directory.setPermissions(0o600, of: "password")
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("backup --layout android --root phone --repo repo --quiet")
  }

  /// The files of the device, with their names in the format.
  private func wanted() throws -> Set<PeerFile> {
    let files = try PeerFile.all(in: "phone/data/data", of: cli).map { file in
      let parts = file.names[0].components
      let domain = Self.domains.first { ByteString($0.0) == parts[1] }?.1 ?? ""
      let start = ByteString("apps/\(parts[0])/\(domain)")
      return PeerFile(
        names: [start.appending(ByteString(joining: Array(parts.dropFirst(2))))],
        digest: file.digest)
    }
    return Set(files)
  }

  private func export(isEncrypted: Bool) throws {
    let options = isEncrypted ? "--password-file password " : ""
    _ = try cli.succeed("export android phone.ab \(options)--repo repo")
  }

  @Test(arguments: [false, true])
  func everyReaderFindsTheSameFiles(isEncrypted: Bool) throws {
    let wanted = try wanted()
    #expect(wanted.count == 2 * (4 * 10 + 2))
    try export(isEncrypted: isEncrypted)
    for peer in ["android_backup", "mvt"] {
      let words = [peer, "phone.ab"] + (isEncrypted ? [Self.password] : [])
      let found = try PeerFile.read("read_android.py", words, in: cli.directory.url)
        .filter { $0.names[0].lastComponent != "_manifest" }
      let (missing, others) = (wanted.subtracting(found), found.subtracting(wanted))
      #expect(missing.isEmpty && others.isEmpty, "\(peer): \(missing) missing, \(others) others")
    }
  }

  @Test(arguments: [false, true])
  func aBackupThatAnotherProgramPackedIsImported(isEncrypted: Bool) throws {
    try export(isEncrypted: false)
    let script = Shared.packageRoot
      .appendingPathComponent("Tests/CommandTests/Programs/pack_android.py").path
    let packed = try Program.run(
      Peers.python.path,
      ["-B", script, "phone.ab", "packed.ab"] + (isEncrypted ? [Self.password] : []),
      in: cli.directory.url)
    try #require(packed.code == 0, "\(packed.errors)")
    _ = try cli.succeed("init other --plain --no-default")
    let options = isEncrypted ? "--password-file password " : ""
    let report = try cli.json("import android packed.ab \(options)--json --repo other")
    #expect(
      report["format"] as? String == "Android backup version 4, compressed"
        + (isEncrypted ? ", encrypted" : ""))
    _ = try cli.succeed("restore latest --to imported --repo other --quiet")
    let found = try PeerFile.all(in: "imported", of: cli).compactMap { file -> PeerFile? in
      let parts = file.names[0].components
      guard parts.count > 3, parts[2] == "data" else { return nil }
      return PeerFile(
        names: [parts[1].appending(ByteString(joining: Array(parts.dropFirst(3))))],
        digest: file.digest)
    }
    #expect(try Set(found) == PeerFile.all(in: "phone/data/data", of: cli))
  }
}
