internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import InterApp
internal import SandboxModel
internal import SystemIO

/// `sandboxctl interapp deliver FILE… --to APP`: copies files into the inbox of an app.
struct DeliverCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "deliver",
      abstract: "Copy files or document packages into the inbox of an app",
      usage: "sandboxctl interapp deliver <file> ... --to <app> [--root <dir>] [<options>]",
      discussion: """
        Copies each file into Documents/Inbox of the app, as AirDrop and document interaction do, \
        if a complete declaration in CFBundleDocumentTypes accepts its type. The copy has the mode \
        0444, since the app must not write there, and -1, -2, … before its extension if the name \
        is in use. 'interapp inbox check' finds files that were changed since. A document package, \
        a directory such as Notes.rtfd, is copied as a whole; other directories are refused.

        If some of several files are refused, the others are delivered, and the exit status is 3.

        \(Examples.text([
          "sandboxctl interapp deliver report.pdf --to notebook --root device",
          "sandboxctl interapp deliver photo.png --to darkroom --root device --dry-run",
        ]))
        """)
  }

  /// In other commands `--to` names a directory.
  static var ownOptions: Set<String> { ["to"] }

  @Argument(help: ArgumentHelp("The files.", valueName: "file"), completion: .file())
  var files: [ByteString]

  @Option(help: .app("The app"))
  var to: ByteString

  @Flag(name: .shortAndLong, help: "Show what would be delivered, without copying.")
  var dryRun = false

  @OptionGroup var source: InterAppOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let (device, model) = try source.load()
    console.warn(ofInterruptedOn: device)
    let app = try device.appWithInbox(to)
    let delivery = try Delivery(to: app, on: device, model: model)
    if let use = delivery.uses.first {
      console.note("\(app.identifier) is running: process \(use.process) (\(use.name))")
    }
    var failures = 0
    var preview = Delivery.Preview()
    for file in files {
      do {
        let outcome =
          dryRun ? try delivery.preview(file, after: &preview) : try delivery.deliver(file)
        try show(outcome, of: file, console)
      } catch let error as OperationError where files.count > 1 {
        failures += 1
        console.warning(error.description)
      }
    }
    return failures == 0 ? .done : failures == files.count ? .failed : .doneInPart
  }

  private func show(
    _ outcome: Delivery.Outcome, of file: ByteString, _ console: Console
  ) throws {
    if output.json {
      return try console.result(
        .object(
          JSON.path(file, named: "file") + JSON.path(outcome.path) + [
            JSON.Member("app", .string(outcome.handler.app.description)),
            JSON.Member("type", .string(outcome.type.description)),
            JSON.Member("declaration", .string(outcome.handler.key)),
            JSON.Member("rank", .string(outcome.handler.rank.rawValue)),
            JSON.Member("package", .bool(outcome.isPackage)),
            JSON.Member("size", .integer(Int64(clamping: outcome.size))),
            JSON.Member("hash", outcome.hash.isEmpty ? .null : .string(outcome.hash)),
            JSON.Member("dry_run", .bool(dryRun)),
          ]))
    }
    if output.quiet { return }
    let verb = dryRun ? "would be delivered to" : "delivered to"
    try console.result("\(file): \(verb) \(outcome.path) (\(outcome.type))")
  }
}

extension Device {
  /// Returns the app with a name, for its inbox.
  ///
  /// - Throws: `UsageError` if an extension has the name.
  func appWithInbox(_ name: ByteString) throws -> App {
    let isExtension = apps.contains { app in
      app.extensions.contains { $0.identifier.bytes == name }
    }
    guard isExtension else { return try app(name) }
    throw UsageError(
      .invalidTarget, "'\(name)' is an app extension, which has no inbox",
      hint: "the system passes files to an extension only as attachments of a request of its host "
        + "app; deliver to the app that contains it")
  }
}
