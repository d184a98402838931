internal import ArgumentParser

/// The form of a command's output.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print JSON, one object per line.")
  var json = false

  @Flag(name: .shortAndLong, help: "Omit notes and summaries.")
  var quiet = false

  @Option(help: Self.profileHelp)
  var profile: String?

  /// The help of `--profile`, also for commands that have no other of these options.
  static var profileHelp: ArgumentHelp {
    ArgumentHelp("Use the options of this profile of the configuration file.", valueName: "name")
  }
}

/// Arguments that are invalid or cannot be combined: exit status 2.
struct UsageError: Error, CustomStringConvertible {
  let description: String
  let hint: String?

  init(_ description: String, hint: String? = nil) {
    self.description = description
    self.hint = hint
  }
}
