internal import Codecs
public import SystemIO

/// This host's record of the last successful run of a command on a repository.
public struct RunStamp: Sendable {
  private let file: CacheFile
  private static let limit = 4096

  /// Uses a directory for one repository, and creates it with its parents if it is missing. A
  /// directory that other users can write to is not used.
  ///
  /// - Parameters:
  ///   - command: the name of the command, with which the name of the file begins.
  ///   - words: the options that distinguish its runs: those with other options have a stamp of
  ///     their own.
  public init(directory: ByteString, command: String, words: [String]) {
    let digest = Blake2b.hash(Array(words.joined(separator: "\0").utf8))
    file = CacheFile(directory: directory, name: ByteString("\(command)-\(digest.hex)"))
  }

  /// Whether a name is that of a record: the name of a command, and the id of its options.
  public static func isFile(_ name: ByteString) -> Bool {
    guard let text = name.utf8, let dash = text.lastIndex(of: "-") else { return false }
    let command = text[..<dash]
    return !command.isEmpty && command.allSatisfy { $0.isLowercase && $0.isASCII }
      && Digest(hex: text[text.index(after: dash)...]) != nil
  }

  /// Returns the time of the last successful run, or nil if there is no usable file.
  public func load() -> Timestamp? {
    guard let bytes = file.load(limit: Self.limit), let json = try? JSON(parsing: bytes),
      json["version"]?.integer == 1, let time = json["time"]?.string
    else { return nil }
    return Timestamp(rfc3339: time)
  }

  /// Records a successful run. If that fails, the command runs again next time.
  public func save(_ time: Timestamp) {
    let json: JSON = ["version": 1, "time": .string(time.rfc3339)]
    file.save(json.line)
  }
}
