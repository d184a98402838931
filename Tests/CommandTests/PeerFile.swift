import Foundation
import SystemIO
import TestSupport

/// A file in an exported backup, as another program reads it.
struct PeerFile: Hashable {
  /// The names of the file, for example its domain and the path in it. They are bytes: names that
  /// differ only in their Unicode form are equal as strings.
  let names: [ByteString]
  /// The SHA-256 of the content, in hexadecimal digits.
  let digest: String

  /// Runs a program of Programs with the peers' Python, and returns the files that it prints: a
  /// JSON list for each, of the names, the size and the digest.
  static func read(
    _ program: String, _ arguments: [String], in directory: URL
  ) throws -> Set<PeerFile> {
    let script = Shared.packageRoot
      .appendingPathComponent("Tests/CommandTests/Programs/" + program).path
    let outcome = try Program.run(
      Peers.python.path, ["-B", script] + arguments, environment: environment(directory),
      in: directory)
    guard outcome.code == 0 else {
      let words = ([program] + arguments).joined(separator: " ")
      throw Program.Failure(description: "\(words): \(outcome.errors.suffix(2000))")
    }
    var files: Set<PeerFile> = []
    for line in outcome.standardOutput.split(separator: UInt8(ascii: "\n")) {
      let items = try JSONSerialization.jsonObject(with: Data(line)) as? [Any] ?? []
      guard items.count > 2, let digest = items.last as? String else {
        throw Program.Failure(description: "\(program) printed \(items)")
      }
      let names = items.dropLast(2).map { ByteString($0 as? String ?? "") }
      guard files.insert(PeerFile(names: names, digest: digest)).inserted else {
        throw Program.Failure(description: "\(program) printed \(names) twice")
      }
    }
    return files
  }

  /// The environment of a program that runs in a directory: some peers write a configuration into
  /// the home directory, or leave a decrypted manifest behind.
  private static func environment(_ directory: URL) -> [String: String] {
    let home = directory.appendingPathComponent("home").path
    return ["HOME": home, "XDG_CONFIG_HOME": home + "/.config", "TMPDIR": directory.path]
  }

  /// Returns the files in a directory whose names are text, with their paths as only names.
  static func all(in directory: ByteString, of cli: CommandLine) throws -> Set<PeerFile> {
    let outcome = try Program.run(
      "find", [".", "-type", "f", "-exec", "sha256sum", "-z", "{}", "+"],
      in: cli.directory.url.appendingPathComponent("\(directory)"))
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
    let files = outcome.standardOutput.split(separator: 0).compactMap { line -> PeerFile? in
      // 64 digits, two characters, and `./` before the path.
      let path = ByteString(line.dropFirst(68))
      guard path.utf8 != nil else { return nil }
      return PeerFile(names: [path], digest: String(decoding: line.prefix(64), as: UTF8.self))
    }
    return Set(files)
  }
}
