import Foundation
import SystemIO
import TestSupport
import Testing

/// Backups of `export itunes`, read by six third-party programs, after which the functions of
/// Programs/read_itunes.py are named.
@Suite(.enabled(if: Peers.areInstalled)) struct ITunesPeersTests {
  private let cli: CommandLine

  private static let peers = [
    "dissect", "iosbackup", "iphone_backup_decrypt", "mvt", "pyiosbackup", "pymobiledevice3",
  ]
  private static let password = "the right password"
  private static let app = "org.example.notebook"

  /// Makes a snapshot of the sample device with files on which readers may fail, and restores it.
  init() throws {
    cli = try CommandLine()
    _ = try cli.succeed("sample device")
    let container = ByteString("apps/\(Self.app)/data")
    let data = try #require(try cli.containers(of: "device").first { $0.path == container })
    try addFiles(to: data.realPath.relative(to: cli.directory.path("")).appending("Documents"))
    try cli.directory.write(Self.password + "\n", at: "password")
    try cli.directory.directory.setPermissions(0o600, of: "password")
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("backup --root device --repo repo --quiet")
    _ = try cli.succeed("restore latest --to restored --repo repo --quiet")
  }

  private func addFiles(to documents: ByteString) throws {
    var random = Seeded(21)
    func write(_ bytes: [UInt8], _ path: String) throws {
      try cli.directory.write(bytes, at: documents.appending(ByteString(path)))
    }
    // Sizes around a block of the cipher, and one of many blocks that is not a multiple of the
    // block size.
    for size in [0, 1, 15, 16, 17, 4096, 5_000_001] {
      try write(random.bytes(size), "sizes/\(size)")
    }
    for name in [
      "it's a \"quote\", 100%_done;--", "tab\ttab", "new\nline", "trailing space ", " leading",
      "back\\slash", "-n", "...", ".hidden", "caf\u{e9}", "cafe\u{301}", "\u{1f3f4}\u{e0067}",
      "Case", "case", String(repeating: "n", count: 255),
    ] {
      try write(Array(name.utf8), "names/" + name)
    }
    try write([1], String(repeating: "deep/", count: 60) + "file")
    try write([2], "Inbox/received.pdf")
    let outcome = try Program.run(
      "/bin/bash",
      [
        "-ec",
        """
        cd "$1"; ln sizes/4096 sizes/twin; ln -s ../sizes names/link; mkdir none
        setfattr -n user.note -v value sizes/1
        setfattr -n user.large -v "$(printf '%03000d' 0)" sizes/15
        for class in 1 2 4; do
          echo "$class" > "class-$class"
          setfattr -n user.sandboxctl.protection-class -v "$class" "class-$class"
        done
        touch -d 1969-12-31T23:00:00Z sizes/17; touch -d 2500-01-01T00:00:00Z class-2
        """, "bash", "\(documents)",
      ], in: cli.directory.url)
    try #require(outcome.code == 0, "\(outcome.errors)")
  }

  /// The files of the snapshot that a backup holds, by domain and path.
  private func wanted() throws -> Set<PeerFile> {
    let files = try PeerFile.all(in: "restored", of: cli).compactMap { file -> PeerFile? in
      let parts = file.names[0].components
      let (domain, count): (String, Int)
      switch (parts.first, parts.count) {
      case ("apps", 4...) where parts[2] == "data": (domain, count) = ("AppDomain-\(parts[1])", 3)
      case ("apps", 6...) where parts[2] == "extensions":
        (domain, count) = ("AppDomainPlugin-\(parts[3])", 5)
      case ("groups", 3...): (domain, count) = ("AppDomainGroup-\(parts[1])", 2)
      default: return nil
      }
      return PeerFile(
        names: [ByteString(domain), ByteString(joining: Array(parts.dropFirst(count)))],
        digest: file.digest)
    }
    return Set(files)
  }

  /// Exports the snapshot. Bundles are not exported, so the export is not complete.
  private func export(isEncrypted: Bool) throws {
    let options = isEncrypted ? "--password-file password " : ""
    let outcome = try cli.run("export itunes phone \(options)--repo repo")
    try #require(outcome.code == 3, "\(outcome.errors)")
  }

  @Test(arguments: [false, true])
  func everyReaderExtractsTheSameFiles(isEncrypted: Bool) throws {
    let wanted = try wanted()
    #expect(wanted.count > 80)
    #expect(Set(wanted.map { $0.names[0] }).count == 7)
    try export(isEncrypted: isEncrypted)
    for peer in Self.peers {
      let words = [peer, "phone"] + (isEncrypted ? [Self.password] : [])
      let found = try PeerFile.read("read_itunes.py", words, in: cli.directory.url)
      let (missing, others) = (wanted.subtracting(found), found.subtracting(wanted))
      #expect(missing.isEmpty && others.isEmpty, "\(peer): \(missing) missing, \(others) others")
    }
  }

  /// A backup whose manifest another program decrypted, changed and encrypted again.
  @Test func aBackupThatAnotherProgramFilteredIsImported() throws {
    try export(isEncrypted: true)
    let domain = "AppDomain-\(Self.app)"
    let kept = try PeerFile.read(
      "filter_itunes.py", ["phone", Self.password, domain], in: cli.directory.url)
    #expect(kept.count > 30)
    _ = try cli.succeed("init other --plain --no-default")
    _ = try cli.succeed("import itunes phone --password-file password --repo other --quiet")
    _ = try cli.succeed("restore latest --to imported --repo other --quiet")
    let names = Set(kept.map(\.names))
    let expected = try wanted().filter { names.contains($0.names) }
    #expect(expected.count == kept.count)
    let found = try PeerFile.all(in: "imported", of: cli)
    let prefix = ByteString("apps/\(Self.app)/data")
    #expect(
      found
        == Set(
          expected.map {
            PeerFile(names: [prefix.appending($0.names[1])], digest: $0.digest)
          }))
  }
}
