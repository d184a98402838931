internal import Codecs
internal import DeviceScan
internal import InterApp
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The options of the commands that fix findings, each with a space before it; empty if the audit
/// was run without them.
package struct CommandOptions: Sendable {
  /// The options that name the device: ` --root device`.
  package let device: String
  /// The options that name the repository: ` --repo repo`.
  package let repository: String

  /// Creates options.
  package init(device: String = "", repository: String = "") {
    (self.device, self.repository) = (device, repository)
  }
}

/// The scan and the history that all checks examine, and the form of their findings.
struct AuditContext {
  let scan: DeviceScan
  let now: Timestamp
  let history: ChangeHistory?
  let options: CommandOptions
  /// The declarations of the bundles, by the logical path of their container.
  private let declarations: [ByteString: BundleDeclarations.Result]
  /// The names of the documents of apps that have some; empty on platforms other than Apple's.
  let documents: [BundleIdentifier: DocumentNames]

  /// Reads the declarations of all bundles.
  ///
  /// - Parameter types: Returns the types of the system.
  init(
    _ scan: DeviceScan, now: Timestamp, history: ChangeHistory?, options: CommandOptions,
    types: () throws -> TypeTable
  ) rethrows {
    self.scan = scan
    self.now = now
    self.history = history
    self.options = options
    var declarations: [ByteString: BundleDeclarations.Result] = [:]
    for container in scan.containers where container.container.kind == .bundle {
      declarations[container.container.logicalPrefix] = BundleDeclarations.all(
        in: container, of: scan.device)
    }
    self.declarations = declarations
    documents =
      try Self.isApple(scan.device)
      ? DocumentNames.all(Self.apps(in: scan, declarations), types: types) : [:]
  }

  /// Returns the lists of apps, in the order of their containers. `BundleCheck` reports lists that
  /// cannot be used.
  private static func apps(
    in scan: DeviceScan, _ declarations: [ByteString: BundleDeclarations.Result]
  ) -> [(app: BundleIdentifier, list: PropertyList)] {
    scan.containers.flatMap { container -> [(app: BundleIdentifier, list: PropertyList)] in
      guard let owner = container.container.owner else { return [] }
      return (declarations[container.container.logicalPrefix]?.found ?? [])
        .filter { !$0.isExtension }.map { (owner, $0.list) }
    }
  }

  /// Returns the declarations of the bundles in a container.
  func declarations(in container: ContainerScan) -> BundleDeclarations.Result {
    declarations[container.container.logicalPrefix] ?? ([], [])
  }

  var device: Device { scan.device }
  var policy: CompiledPolicy { scan.policy }

  /// Whether the device's apps follow Apple's guides.
  var isApple: Bool { Self.isApple(device) }

  private static func isApple(_ device: Device) -> Bool {
    device.layout == .coreSimulator || device.layout == .macOS
  }

  /// A command that fixes the problem of a finding.
  enum Command {
    /// A command of this program on the device, with the words before the options.
    case own([ByteString])
    /// A command of this program that changes the device and saves its data first.
    case change([ByteString])
    /// A command of this program that reads snapshots.
    case query([ByteString])
    /// A command of another program.
    case other(program: String, [ByteString])
  }

  /// Returns the text of a command, quoted for a shell.
  func text(_ command: Command) -> String {
    switch command {
    case .own(let words): Self.text("sandboxctl", words) + options.device
    case .change(let words): Self.text("sandboxctl", words) + options.device + options.repository
    case .query(let words): Self.text("sandboxctl", words) + options.repository
    case .other(let program, let words): Self.text(program, words)
    }
  }

  private static func text(_ program: String, _ words: [ByteString]) -> String {
    ([program] + words.map { ShellWord.text($0) }).joined(separator: " ")
  }

  /// Returns a finding about a scanned entry.
  ///
  /// - Parameter totals: The files concerned (default: the entry itself).
  func finding(
    _ rule: AuditRule, _ index: Int, in container: ContainerScan, totals: EntryTotals? = nil,
    detail: String, key: String = "", command: Command
  ) -> AuditFinding {
    var own = EntryTotals()
    own.add(container.entries[index].status)
    return finding(
      rule, container.path(index), in: container.container, totals: totals ?? own,
      isDirectory: container.entries[index].status.kind == .directory, detail: detail, key: key,
      command: command)
  }

  /// Returns a finding about a path in a container.
  func finding(
    _ rule: AuditRule, _ path: ByteString, in container: Container,
    totals: EntryTotals = EntryTotals(), isDirectory: Bool = false, detail: String,
    key: String = "", command: Command
  ) -> AuditFinding {
    AuditFinding(
      rule: rule, path: container.logicalPrefix.appending(path),
      realPath: container.absolutePath.appending(path), isDirectory: isDirectory,
      owner: (container.owner ?? container.identifier)?.bytes, files: totals.files,
      bytes: totals.bytes, detail: detail, key: key, command: text(command))
  }
}

/// A topic of the audit: one or more rules that examine the same facts.
protocol AuditCheck {
  /// Adds the findings of all containers.
  static func run(_ context: AuditContext, into findings: inout FindingCollector)
}
