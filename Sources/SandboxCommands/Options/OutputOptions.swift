internal import ArgumentParser

/// How a command answers.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Answer in JSON, for programs.")
  var json = false

  @Flag(name: .shortAndLong, help: "Leave out notes and summaries; results stay.")
  var quiet = false

  @Option(help: Self.profileHelp)
  var profile: String?

  /// What the help says of `--profile`, also where a command has no other of these options.
  static var profileHelp: ArgumentHelp {
    ArgumentHelp("Take this profile's options from the configuration file.", valueName: "name")
  }
}

/// A request that does not make sense as it is: exit status 2.
struct UsageError: Error, CustomStringConvertible {
  let description: String
  let hint: String?

  init(_ description: String, hint: String? = nil) {
    self.description = description
    self.hint = hint
  }
}
