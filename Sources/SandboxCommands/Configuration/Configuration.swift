internal import Codecs
internal import SystemIO

/// The user's configuration file: default options for all commands or for one, and the same by
/// profile.
///
/// sandboxctl-config(5) describes its grammar. Each key is checked against the program's own
/// commands and options. A mistake is reported with file, line and column.
struct Configuration {
  /// The path of the file, for messages.
  let file: ByteString
  /// The settings outside of profiles.
  let settings: [Setting]
  /// The settings of each profile.
  let profiles: [String: [Setting]]

  /// An option with its value.
  struct Setting {
    /// The words of the command it applies to; empty for every command that has the option.
    let command: [String]
    /// The option's long name.
    let name: String
    let value: Value
    /// Its position in the file.
    let mark: Mark

    /// The value of an option.
    enum Value: Equatable {
      case flag(Bool)
      /// One value, unless the option can be repeated.
      case values([ByteString])
    }
  }

  /// The path of the file; nil if the environment names no directory for it.
  static var path: ByteString? { Host.configurationDirectory?.appending("sandboxctl/config.yaml") }

  /// The maximum size of the file, in bytes.
  static let maximumSize = 1 << 20

  /// Returns the user's configuration, or nil if there is no file.
  static func read(for program: KnownCommand) throws -> Configuration? {
    guard let path, let text = try text(at: path) else { return nil }
    return try Configuration(text, at: path, for: program)
  }

  /// Returns the bytes of a file, or nil if there is none.
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
        "the file is larger than \(maximumSize) bytes", at: Mark(line: 1, column: 1), in: path,
        hint: "check that it is the right file"
      ).error
    }
    return bytes
  }

  /// Parses the text of a file.
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

  init(_ problem: String, at mark: Mark, in file: ByteString, hint: String? = nil) {
    place = "\(file):\(mark)"
    self.problem = problem
    self.hint = hint
  }

  /// The mistake as an error.
  var error: ConfigurationError {
    ConfigurationError(
      description: "cannot use the configuration: \(place): \(problem)",
      hint: hint ?? "'man sandboxctl-config' describes the file")
  }
}

/// A configuration that cannot be used: exit status 1.
struct ConfigurationError: Error {
  let description: String
  let hint: String
}
