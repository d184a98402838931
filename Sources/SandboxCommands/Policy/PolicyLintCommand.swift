internal import ArgumentParser
internal import Codecs
internal import PolicyEngine
internal import SystemIO

/// The policies to check.
struct PolicyArguments: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "Policy files, or names of policies (default: all policies).", valueName: "file|name"))
  var policies: [ByteString] = []

  /// Returns the library with the files in it, and the names of the sources to check.
  func load() throws -> (library: PolicyLibrary, sources: [String?]) {
    let named = try PolicyFiles.library(extra: [])
    let names = policies.map { $0.utf8.flatMap(named.policy)?.source.name }
    let files = zip(policies, names).filter { $1 == nil }.map(\.0)
    let library = files.isEmpty ? named : try PolicyFiles.library(extra: [], drafts: files)
    if policies.isEmpty { return (library, [nil]) }
    return (library, zip(policies, names).map { $1 ?? $0.description })
  }
}

/// `sandboxctl policy lint [FILE|NAME …]`.
struct PolicyLintCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "lint",
      abstract: "Check policies and report mistakes with line and column",
      discussion: """
        A file is checked together with the policies that it extends, and its examples are run. \
        The exit status is 5 if there is a mistake.

        \(Examples.text(["sandboxctl policy lint", "sandboxctl policy lint ios --json"]))
        """)
  }

  @OptionGroup var arguments: PolicyArguments
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let (library, sources) = try arguments.load()
    let issues = sources.flatMap { library.lint($0) }
    for issue in issues {
      try output.json ? console.result(issue.json) : console.result(issue.description)
    }
    let isWrong = issues.contains { $0.severity == .error }
    if !isWrong, !output.json, !output.quiet {
      let count = sources == [nil] ? library.documents.count : sources.count
      try console.result("\(Sizes.count(count, "file")): no mistakes")
    }
    return isWrong ? .goalNotMet : .done
  }
}

/// `sandboxctl policy test [FILE|NAME …]`.
struct PolicyTestCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "test",
      abstract: "Run the examples in policies",
      discussion: """
        An example is a path with the expected decision. The exit status is 5 if an example fails.

        \(Examples.text(["sandboxctl policy test", "sandboxctl policy test flatpak"]))
        """)
  }

  @OptionGroup var arguments: PolicyArguments
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let (library, sources) = try arguments.load()
    var count = 0
    var failures: [PolicyIssue] = []
    for source in sources {
      let broken = library.lint(source).filter { $0.severity == .error && $0.kind != .example }
      if let first = broken.first {
        throw UsageError(
          "cannot run the examples: \(first.location): \(first.problem)",
          hint: "'sandboxctl policy lint' lists all mistakes")
      }
      let result = library.test(source)
      count += result.count
      failures += result.failures
    }
    for failure in failures {
      try output.json ? console.result(failure.json) : console.result(failure.description)
    }
    if output.json {
      try console.result(
        [
          "summary": [
            "examples": .integer(Int64(count)), "failed": .integer(Int64(failures.count)),
          ]
        ])
    } else if !output.quiet {
      try console.result("\(Sizes.count(count, "example")), \(Sizes.count(failures.count)) failed")
    }
    return failures.isEmpty ? .done : .goalNotMet
  }
}

extension PolicyIssue {
  /// The issue as a line of `policy lint --json`.
  var json: JSON {
    [
      "file": .string(location.file), "line": .integer(Int64(location.line)),
      "column": .integer(Int64(location.column)), "severity": .string(severity.rawValue),
      "kind": .string(kind.rawValue), "problem": .string(problem), "expected": .string(expected),
    ]
  }
}
