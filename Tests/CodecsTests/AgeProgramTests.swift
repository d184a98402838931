import Foundation
import TestSupport
import Testing

@testable import Codecs

/// Files that Debian's `age` decrypts, and files that it encrypts.
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
        let told = try decrypt(stored, with: AgeFixture.text(identity))
        #expect(told.status == 0 && told.output == plain, "\(told.errors)")
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
      let told = try run(["age"] + options + recipients, input: plain)
      #expect(told.status == 0, "\(told.errors)")
      let file = options.isEmpty ? told.output : try AgeArmor.decode(told.output)
      #expect(options.isEmpty != AgeArmor.isArmored(told.output.span))
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
    let told = try decrypt(rewritten, with: AgeFixture.text(new))
    #expect(told.status == 0 && told.output == plain, "\(told.errors)")
    #expect(try decrypt(rewritten, with: AgeFixture.text(old)).status != 0)
  }

  /// `age` reads a passphrase from a terminal only.
  @Test func passphrasesAreThoseOfAge() throws {
    let place = try TemporaryDirectory()
    let plain = Array("a key file\n".utf8)
    let passphrase = "pässphrase with spaces"
    let ours = try AgeFile(for: AgeFixture.passphrase(passphrase), workFactor: 10)
    try Data(ours.encrypt(plain.span)).write(to: URL(fileURLWithPath: place.path + "/ours"))
    try Data(plain).write(to: URL(fileURLWithPath: place.path + "/plain"))
    try terminal(passphrase, ["-d", "-o", "decrypted", "ours"], place.path)
    let decrypted = try Data(contentsOf: URL(fileURLWithPath: place.path + "/decrypted"))
    #expect(Array(decrypted) == plain)
    try terminal(passphrase, ["-p", "-o", "theirs", "plain"], place.path)
    let theirs = Array(try Data(contentsOf: URL(fileURLWithPath: place.path + "/theirs")))
    #expect(try AgeFixture.decrypt(theirs, with: AgeFixture.passphrase(passphrase)) == plain)
  }

  private func decrypt(_ file: [UInt8], with identity: String) throws -> Output {
    let place = try TemporaryDirectory()
    let path = place.path + "/identity"
    try Data("\(identity)\n".utf8).write(to: URL(fileURLWithPath: path))
    return try run(["age", "-d", "-i", path], input: file)
  }

  /// Runs `age` on a terminal and types a passphrase at each prompt.
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
    let told = try run(["python3", "-c", script, passphrase] + words, directory: directory)
    #expect(
      told.status == 0, "\(told.errors)\(String(decoding: told.output, as: UTF8.self))")
  }
}
