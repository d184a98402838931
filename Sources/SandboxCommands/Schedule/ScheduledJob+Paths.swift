internal import RemoteStorage
internal import SystemIO

extension ScheduledJob {
  /// Returns the options of a job with absolute paths: a scheduler starts it in another directory,
  /// in which a relative path names something else.
  ///
  /// - Throws: `UsageError` if there is a relative path and the working directory is not UTF-8.
  static func absolute(
    _ words: [String], of command: KnownCommand
  ) throws(UsageError) -> [String] {
    var absolute: [String] = []
    var named: KnownCommand.Option?
    for word in words {
      if let option = named {
        absolute.append(try option.absolute(word))
        named = nil
        continue
      }
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = String(parts[0].dropFirst("--".count))
      guard word.hasPrefix("--"), let option = command.option(name), !option.isFlag else {
        absolute.append(word)
        continue
      }
      if parts.count == 1 {
        named = option
        absolute.append(word)
      } else {
        absolute.append("\(parts[0])=\(try option.absolute(String(parts[1])))")
      }
    }
    return absolute
  }
}

extension KnownCommand.Option {
  /// Returns a value of this option with an absolute path, if it is a relative path.
  fileprivate func absolute(_ value: String) throws(UsageError) -> String {
    let path = ByteString(argument: value)
    guard !path.isEmpty, !path.isAbsolute, namesFile(path) else { return value }
    guard let directory = Host.workingDirectory(), directory.utf8 != nil else {
      throw UsageError(
        .invalidInput, "the path of the working directory is not UTF-8",
        hint: "give an absolute path to '--\(name)'")
    }
    return directory.appending(path).argument
  }

  /// Whether a value of this option names a file or directory of this host.
  private func namesFile(_ value: ByteString) -> Bool {
    switch valueName {
    case "dir", "file": true
    case "name|file": PolicyChoice.isFile(value)
    case "repo": (try? RepositoryLocation(parsing: value))?.localPath != nil
    default: false
    }
  }
}
