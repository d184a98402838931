internal import ArgumentParser
internal import BuiltinPolicies
internal import Codecs
internal import Migration
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `sandboxctl policy …`: lists, shows and checks policies.
struct PolicyCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "policy",
      abstract: "List, show and check policies",
      discussion: """
        A policy is a file of rules that assign each path a data class and decide about its \
        backup, update, purge and restore. sandboxctl-policy(5) describes its format. Some \
        policies are built in; files in ~/.config/sandboxctl/policies and /etc/sandboxctl/policies \
        add policies and overlays.

        \(Examples.text(["sandboxctl policy list", "sandboxctl policy show ios"]))
        """,
      subcommands: [List.self, Show.self, Lint.self, Test.self, Schema.self])
  }
}

extension PolicyCommand {
  /// `sandboxctl policy list`.
  struct List: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "list",
        abstract: "List the policies and overlays",
        discussion: Examples.text(["sandboxctl policy list", "sandboxctl policy list --json"]))
    }

    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let documents = try PolicyFiles.library(extra: []).documents
      if output.json {
        for document in documents { try console.result(document.json) }
        return .done
      }
      var table = Table([
        ("policy", .left), ("layout", .left), ("extends", .left), ("rules", .right),
        ("examples", .right), ("file", .left), ("title", .left),
      ])
      for document in documents {
        table.add([
          document.name ?? "(overlay)", document.layout?.rawValue ?? "",
          document.extends.map(\.name).joined(separator: ", "), Sizes.count(document.ruleCount),
          Sizes.count(document.examples.count), document.source.name, document.title ?? "",
        ])
      }
      try console.result(table)
      return .done
    }
  }

  /// `sandboxctl policy show NAME`.
  struct Show: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "show",
        abstract: "Print a policy's file",
        discussion: """
          Prints the file unchanged, to read it or to use it as a template.

          \(Examples.text(["sandboxctl policy show everything"]))
          """)
    }

    @Argument(help: ArgumentHelp("The name of the policy.", valueName: "name"))
    var name: String

    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let library = try PolicyFiles.library(extra: [])
      guard let document = library.policy(name) else {
        throw UsageError(
          .noPolicy, "there is no policy '\(ByteString(name))'",
          hint: "choose one of \(library.policyNames.joined(separator: ", "))")
      }
      let text = String(decoding: document.source.bytes, as: UTF8.self)
      if output.json {
        try console.result(
          JSON.object([
            JSON.Member("policy", .string(name)),
            JSON.Member("file", .string(document.source.name)), JSON.Member("text", .string(text)),
          ]))
      } else {
        try console.result(text.hasSuffix("\n") ? String(text.dropLast()) : text)
      }
      return .done
    }
  }

  /// The policies and migration tables to check.
  struct Arguments: ParsableArguments {
    @Argument(
      help: ArgumentHelp(
        "Policy files or migration tables, or names of policies (default: all).",
        valueName: "file|name"))
    var policies: [ByteString] = []

    /// The files to check.
    struct Selection {
      /// The policies, with those named on the command line.
      let library: PolicyLibrary
      /// The names of the policy files to check; nil for all.
      var sources: [String?]
      /// The migration tables to check.
      let tables: MigrationLibrary

      /// The number of files.
      var count: Int {
        (sources == [nil] ? library.documents.count : sources.count) + tables.tables.count
      }
    }

    /// Returns the library with the files in it, and the files to check.
    func load() throws -> Selection {
      let named = try PolicyFiles.library(extra: [])
      if policies.isEmpty {
        return Selection(library: named, sources: [nil], tables: try MigrationFiles.library())
      }
      let names = policies.map { $0.utf8.flatMap(named.policy)?.source.name }
      let files = try zip(policies, names).filter { $1 == nil }.map { path, _ in
        try Self.file(path)
      }
      let tables = files.filter(MigrationTable.isTable)
      let drafts = files.filter { !MigrationTable.isTable($0) }
      let library = drafts.isEmpty ? named : try PolicyFiles.library(drafts: drafts)
      let ofTables = Set(tables.map(\.name))
      let sources = zip(policies, names).map { $1 ?? $0.description }
      return Selection(
        library: library, sources: sources.filter { !ofTables.contains($0) },
        tables: MigrationLibrary(tables))
    }

    private static func file(_ path: ByteString) throws -> PolicySource {
      do {
        return try PolicyFiles.file(path, .commandLine)
      } catch let error as SystemError where error.isAbsent {
        throw OperationError(
          .notFound, "open", subject: path, reason: error.reason,
          hint: "check the spelling; 'sandboxctl policy list' lists the names of policies")
      }
    }
  }

  /// `sandboxctl policy lint [FILE|NAME …]`.
  struct Lint: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "lint",
        abstract: "Check policies and report mistakes with line and column",
        discussion: """
          A file is checked together with the policies that it extends, and its examples are run. \
          Migration tables (with the key 'migration') are checked, too. The exit status is 5 if \
          there is a mistake.

          \(Examples.text(["sandboxctl policy lint", "sandboxctl policy lint ios --json"]))
          """)
    }

    @OptionGroup var arguments: Arguments
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let files = try arguments.load()
      let issues = files.sources.flatMap { files.library.lint($0) } + files.tables.lint()
      for issue in issues {
        try output.json ? console.result(issue.json) : console.result(issue.description)
      }
      let isWrong = issues.contains { $0.severity == .error }
      if !isWrong, !output.json, !output.quiet {
        try console.result("\(Sizes.count(files.count, "file")): no mistakes")
      }
      return isWrong ? .goalNotMet : .done
    }
  }

  /// `sandboxctl policy test [FILE|NAME …]`.
  struct Test: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "test",
        abstract: "Run the examples in policies",
        discussion: """
          An example is a path with the expected decision. The exit status is 5 if an example fails.

          \(Examples.text(["sandboxctl policy test", "sandboxctl policy test flatpak"]))
          """)
    }

    @OptionGroup var arguments: Arguments
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let files = try arguments.load()
      var count = files.tables.tables.reduce(0) { $0 + $1.examples.count }
      var failures = files.tables.lint().filter { $0.kind == .example }
      try Self.refuse(files.tables.lint())
      for source in files.sources {
        try Self.refuse(files.library.lint(source))
        let result = files.library.test(source)
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
        try console.result(
          "\(Sizes.count(count, "example")), \(Sizes.count(failures.count)) failed")
      }
      return failures.isEmpty ? .done : .goalNotMet
    }

    /// Refuses files with mistakes that prevent their examples from running.
    private static func refuse(_ issues: [PolicyIssue]) throws {
      guard let first = issues.first(where: { $0.severity == .error && $0.kind != .example }) else {
        return
      }
      throw UsageError(
        .invalidPolicy, "cannot run the examples: \(first.location): \(first.problem)",
        hint: "'sandboxctl policy lint' lists all mistakes")
    }
  }

  /// `sandboxctl policy schema`.
  struct Schema: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "schema",
        abstract: "Print the JSON Schema of policy files, for editors",
        discussion: Examples.text([
          "sandboxctl policy schema", "sandboxctl policy schema --migration",
        ]))
    }

    @Flag(help: "Print the schema of migration tables.")
    var migration = false

    func run(_ console: Console) throws -> ExitStatus {
      try console.result(migration ? MigrationGrammar.schema : PolicySchema.text)
      return .done
    }
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

extension PolicyDocument {
  /// The number of rules and marks in the file.
  fileprivate var ruleCount: Int {
    rules.count + apps.reduce(0) { $0 + $1.rules.count }
      + groups.reduce(0) { $0 + $1.rules.count } + finalRules.count + markers.count
      + finalMarkers.count
  }

  fileprivate var json: JSON {
    [
      "policy": name.map { .string($0) } ?? .null, "overlay": .bool(name == nil),
      "layout": layout.map { .string($0.rawValue) } ?? .null,
      "title": title.map { .string($0) } ?? .null,
      "extends": .array(extends.map { .string($0.name) }), "rules": .integer(Int64(ruleCount)),
      "examples": .integer(Int64(examples.count)), "file": .string(source.name),
      "origin": .string(source.origin.name),
    ]
  }
}
