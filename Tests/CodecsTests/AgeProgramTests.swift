import Foundation
import TestSupport
import Testing

@testable import Codecs

/// Files that Debian's `age` decrypts, and files that it has encrypted.
@Suite(.enabled(if: Program.exists("age"), "the program age is required"))
struct AgeProgramTests {
  private typealias Seeded = TestSupport.Seeded

  private static let sizes = [0, 1, 65_536, 65_537, 131_072, 300_000]

  @Test(arguments: sizes) func ageDecryptsOurFiles(size: Int) throws {
    var random = Seeded.fresh()
    let plain = random.bytes(size)
    let identities = [AgeIdentity(), AgeIdentity()]
    let file = try AgeFile(for: identities.map(\.recipient)).encrypt(plain.span)
    for identity in identities {
      for stored in [file, AgeArmor.encode(file)] {
        let result = try decrypt(stored, with: AgeFixture.text(identity))
        #expect(result.status == 0 && result.output == plain, "\(result.errors)")
      }
    }
    let other = try decrypt(file, with: AgeFixture.text(AgeIdentity()))
    #expect(other.status != 0 && other.errors.contains("no identity matched"))
  }

  @Test(arguments: sizes) func ageEncryptsForOurIdentities(size: Int) throws {
    var random = Seeded.fresh()
    let plain = random.bytes(size)
    let identities = [AgeIdentity(), AgeIdentity()]
    let recipients = identities.flatMap { ["-r", $0.recipient.description] }
    for options in [[], ["-a"]] {
      let result = try run(["age"] + options + recipients, input: plain)
      #expect(result.status == 0, "\(result.errors)")
      let file = options.isEmpty ? result.output : try AgeArmor.decode(result.output)
      #expect(options.isEmpty != AgeArmor.isArmored(result.output.span))
      for identity in identities {
        #expect(try AgeFixture.decrypt(file, with: [identity]) == plain)
      }
    }
  }

  @Test func ageDecryptsARewrittenHeader() throws {
    let (old, new) = (AgeIdentity(), AgeIdentity())
    let plain = [UInt8](repeating: 6, count: 70_000)
    let file = try AgeFile(for: [old.recipient]).encrypt(plain.span)
    let header = try AgeFile.header(of: file.span, openedWith: [old], for: [new.recipient])
    let rewritten = try header + file[AgeHeader(file.span).count...]
    let result = try decrypt(rewritten, with: AgeFixture.text(new))
    #expect(result.status == 0 && result.output == plain, "\(result.errors)")
    #expect(try decrypt(rewritten, with: AgeFixture.text(old)).status != 0)
  }

  /// `age` reads a passphrase only from a terminal.
  @Test func passphrasesAreCompatibleWithAge() throws {
    let directory = try TemporaryDirectory()
    let plain = Array("a key file\n".utf8)
    let passphrase = "pässphrase with spaces"
    let ours = try AgeFile(for: AgeFixture.passphrase(passphrase), workFactor: 10)
    try Data(ours.encrypt(plain.span)).write(to: URL(fileURLWithPath: directory.path + "/ours"))
    try Data(plain).write(to: URL(fileURLWithPath: directory.path + "/plain"))
    try terminal(passphrase, ["-d", "-o", "decrypted", "ours"], directory.path)
    let decrypted = try Data(contentsOf: URL(fileURLWithPath: directory.path + "/decrypted"))
    #expect(Array(decrypted) == plain)
    try terminal(passphrase, ["-p", "-o", "theirs", "plain"], directory.path)
    let theirs = Array(try Data(contentsOf: URL(fileURLWithPath: directory.path + "/theirs")))
    #expect(try AgeFixture.decrypt(theirs, with: AgeFixture.passphrase(passphrase)) == plain)
  }

  private func decrypt(_ file: [UInt8], with identity: String) throws -> Output {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/identity"
    try Data("\(identity)\n".utf8).write(to: URL(fileURLWithPath: path))
    return try run(["age", "-d", "-i", path], input: file)
  }

  /// Runs `age` on a terminal, and types a passphrase at each prompt.
  private func terminal(_ passphrase: String, _ words: [String], _ directory: String) throws {
    let script = """
      import os, pty, sys
      child, terminal = pty.fork()
      if child == 0:
          os.execvp("age", ["age"] + sys.argv[2:])
      shown, typed = b"", 0
      while True:
          try:
              part = os.read(terminal, 1024)
          except OSError:
              break
          if not part:
              break
          shown += part
          while shown.count(b"passphrase") > typed and shown.rstrip().endswith(b":"):
              typed += 1
              os.write(terminal, os.fsencode(sys.argv[1]) + b"\\n")
      print(shown)
      sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
      """
    let result = try run(["python3", "-c", script, passphrase] + words, directory: directory)
    #expect(
      result.status == 0, "\(result.errors)\(String(decoding: result.output, as: UTF8.self))")
  }
}
