internal import ArgumentParser

/// How a command answers.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Answer in JSON, for programs.")
  var json = false

  @Flag(name: .shortAndLong, help: "Leave out notes and summaries; results stay.")
  var quiet = false

  @Option(
    help: ArgumentHelp(
      "Take this profile's options from the configuration file.", valueName: "name"))
  var profile: String?
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
