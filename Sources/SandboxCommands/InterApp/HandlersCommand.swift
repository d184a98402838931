internal import ArgumentParser
internal import Codecs
internal import InterApp
internal import SandboxModel
internal import SystemIO

/// `sandboxctl interapp handlers`: lists the apps that open a type, a file, or a URL scheme.
struct HandlersCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "handlers",
      abstract: "List the apps that open a type, a file or a URL",
      usage: """
        sandboxctl interapp handlers (--type <id> | --file <path> | --scheme <name> | --url <url>) \
        [--root <dir>] [<options>]
        """,
      discussion: """
        Apps that open a type are listed by rank: Owner, Default, Alternate. If several have the \
        best rank, or declare the same URL scheme, the platform defines no winner, and this is \
        reported. URL schemes of the system always belong to its own apps. The exit status is 5 \
        if no app opens it.

        \(Examples.text([
          "sandboxctl interapp handlers --type public.plain-text --root device",
          "sandboxctl interapp handlers --scheme notebook --root device --json",
        ]))
        """)
  }

  @Option(
    help: ArgumentHelp("The uniform type identifier, for example public.png.", valueName: "id"))
  var type: ByteString?

  @Option(
    help: ArgumentHelp(
      "A file; its type is that of its extension, otherwise of its content.", valueName: "path"),
    completion: .file())
  var file: ByteString?

  @Option(help: ArgumentHelp("The URL scheme, for example mailto.", valueName: "name"))
  var scheme: ByteString?

  @Option(help: ArgumentHelp("A URL.", valueName: "url"))
  var url: ByteString?

  @OptionGroup var source: InterAppOptions

  @Flag(help: "List irregularities of the declarations of all apps.")
  var findings = false

  @OptionGroup var list: ListOptions
  @OptionGroup var output: OutputOptions

  static var precedence: [OptionPrecedence] {
    OptionPrecedence.oneOf(["type"], ["file"], ["scheme"], ["url"])
  }

  func run(_ console: Console) throws -> ExitStatus {
    let request = try request()
    let (device, model) = try source.load()
    let result = try HandlersResult(request, device: device.root, model)
    if output.json {
      try console.result(result.json)
    } else {
      try result.write(console, listsAll: list.all)
      try model.remarks.write(
        console, findings: findings, listsAll: list.all, isQuiet: output.quiet)
    }
    return result.isOpened ? .done : .goalNotMet
  }

  private func request() throws -> HandlersResult.Request {
    let given: [HandlersResult.Request] = [
      type.map { .type($0) }, file.map { .file($0) }, scheme.map { .scheme($0) },
      url.map { .url($0) },
    ].compactMap(\.self)
    guard given.count <= 1 else {
      throw UsageError(
        .optionsConflict, "--type, --file, --scheme and --url cannot be combined",
        hint: "give one of them")
    }
    guard let request = given.first else {
      throw UsageError(
        .optionRequired, "nothing to open is given",
        hint: "name it with --type, --file, --scheme or --url")
    }
    return request
  }
}
