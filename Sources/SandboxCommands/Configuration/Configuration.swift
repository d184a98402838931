internal import Codecs
internal import SystemIO

/// What the user's configuration file says: options that commands get unless the command line says
/// otherwise, for all commands or for one, and the same by profile.
///
/// Its grammar is in sandboxctl-config(5). Each key is held against the program's own commands and
/// options; every mistake is named with file, line and column.
struct Configuration {
  /// The file, for messages and for `init`.
  let file: ByteString
  /// What holds without a profile.
  let settings: [Setting]
  /// What each profile adds, and overrides.
  let profiles: [String: [Setting]]

  /// An option that is set.
  struct Setting {
    /// The words of the command that it is for; none for every command that has the option.
    let command: [String]
    /// The option's long name.
    let name: String
    let value: Value
    /// Where it stands in the file.
    let mark: Mark

    /// What it is set to.
    enum Value: Equatable {
      case flag(Bool)
      /// One for an option that does not repeat.
      case values([ByteString])
    }
  }

  /// Where the file lies; nil where the environment names no directory.
  static var path: ByteString? { Host.configurationDirectory?.appending("sandboxctl/config.yaml") }

  /// Bytes that a file may have.
  static let maximumSize = 1 << 20

  /// Reads the user's file; nil when there is none.
  static func read(for program: KnownCommand) throws -> Configuration? {
    guard let path, let text = try text(at: path) else { return nil }
    return try Configuration(text, at: path, for: program)
  }

  /// The bytes of a file, nil when there is none.
  static func text(at path: ByteString) throws -> [UInt8]? {
    let file: Descriptor
    do throws(SystemError) {
      file = try Descriptor.open(path: path)
    } catch {
      if error.isMissing { return nil }
      throw error
    }
    guard let bytes = try file.readAll(limit: maximumSize) else {
      throw ConfigurationMistake(
        path, Mark(line: 1, column: 1), "the file is larger than \(maximumSize) bytes",
        hint: "check that it is the right file"
      ).error
    }
    return bytes
  }

  /// Reads a file's text.
  init(_ text: [UInt8], at path: ByteString, for program: KnownCommand) throws {
    file = path
    var reader = ConfigurationReader(file: path, program: program)
    (settings, profiles) = try reader.document(text)
  }
}

/// A mistake in the configuration file.
struct ConfigurationMistake {
  private let place: String
  private let problem: String
  private let hint: String?

  init(_ file: ByteString, _ mark: Mark, _ problem: String, hint: String? = nil) {
    place = "\(file):\(mark)"
    self.problem = problem
    self.hint = hint
  }

  /// The mistake as the program tells it.
  var error: ConfigurationError {
    ConfigurationError(
      description: "cannot use the configuration: \(place): \(problem)",
      hint: hint ?? "'man sandboxctl-config' says what a configuration may hold")
  }
}

/// A configuration that cannot be used: exit status 1.
struct ConfigurationError: Error {
  let description: String
  let hint: String
}
