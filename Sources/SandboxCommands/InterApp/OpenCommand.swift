internal import ArgumentParser
internal import Codecs
internal import InterApp
internal import SandboxModel
internal import SystemIO

/// `sandboxctl interapp open URL`: shows which app gets a URL, and what it receives.
struct OpenCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "open",
      abstract: "Show which app gets a URL and what it receives",
      usage: "sandboxctl interapp open <url> [--root <dir>] [<options>]",
      discussion: """
        Prints the app, the parts of the URL, the calls that the system makes with the effects of \
        their return values, and the picture shown meanwhile. Nothing is opened. The exit status \
        is 5 if no app gets the URL or the platform does not define which; it is 2 if the URL is \
        not safe.

        \(Examples.text([
          "sandboxctl interapp open notebook://new?title=List --root device",
          "sandboxctl interapp open notebook:x --state background --root device --json",
        ]))
        """)
  }

  @Argument(help: ArgumentHelp("The URL.", valueName: "url"))
  var url: ByteString

  @Option(
    help: ArgumentHelp(
      "The app's state: not-running, background or foreground.",
      valueName: "state"),
    completion: .list(AppState.allCases.map(\.rawValue)))
  var state = AppState.notRunning.rawValue

  @Option(
    help: ArgumentHelp(
      "The kind of device, for launch images: iphone or ipad.",
      valueName: "kind"),
    completion: .list(LaunchImage.Idiom.allCases.map(\.rawValue)))
  var idiom = LaunchImage.Idiom.phone.rawValue

  @OptionGroup var source: InterAppOptions

  @Flag(help: "List irregularities of the declarations of all apps.")
  var findings = false

  @OptionGroup var list: ListOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let parsed = try URLText(reading: url)
    let (state, idiom) = (try chosenState(), try chosenIdiom())
    let (device, model) = try source.load()
    let opening = URLOpening(
      parsed, URLOpening.Conditions(state: state, version: model.version, idiom: idiom),
      handlers: SchemeHandlers(of: parsed, model.version, in: model.schemes, model.catalog.apps),
      apps: model.catalog.apps
    ) { Self.names(inBundleOf: $0, device) }
    if output.json {
      try console.result(opening.json(device: device.root, model))
    } else {
      try opening.write(console)
      for remark in parsed.remarks { console.note("the URL: \(remark)") }
      try model.remarks.write(
        console, findings: findings, listsAll: list.all, isQuiet: output.quiet)
    }
    return opening.isDefined ? .done : .goalNotMet
  }

  private func chosenState() throws -> AppState {
    guard let known = AppState(rawValue: state) else {
      throw UsageError(
        .invalidValue, "there is no state '\(ByteString(state))'",
        hint: "choose one of \(AppState.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return known
  }

  private func chosenIdiom() throws -> LaunchImage.Idiom {
    guard let known = LaunchImage.Idiom(rawValue: idiom) else {
      throw UsageError(
        .invalidValue, "there is no kind of device '\(ByteString(idiom))'",
        hint: "choose one of \(LaunchImage.Idiom.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return known
  }

  /// Returns the names of the files at the top of an app's bundle; none if it cannot be read.
  private static func names(
    inBundleOf app: BundleIdentifier, _ device: Device
  ) -> Set<ByteString> {
    let container = device.containers.first { $0.owner == app && $0.kind == .bundle }
    guard let bundle = container.flatMap({ AppBundle($0, device.layout) }),
      let directory = try? bundle.open(), let names = try? directory.names()
    else { return [] }
    return Set(names)
  }
}
