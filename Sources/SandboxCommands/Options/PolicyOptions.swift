internal import ArgumentParser
internal import BuiltinPolicies
internal import Interchange
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The policy that a command uses.
struct PolicyChoice: ParsableArguments {
  @Option(
    name: .customLong("policy"),
    help: ArgumentHelp(
      "The name of a policy to use instead of the layout's, or a file to apply on top of it; "
        + "may be repeated.",
      valueName: "name|file"))
  var policies: [ByteString] = []

  /// Compiles the policy for a layout. If none is named, `earlier` is used if it is known here.
  /// With a console, warns about rules of Auto Backup that Android ignores.
  func compile(
    for layout: Layout, version: OSVersion? = nil, patterns: [CommandLinePattern] = [],
    orElse earlier: String? = nil, _ console: Console? = nil
  ) throws -> CompiledPolicy {
    // An argument that is not UTF-8 names no policy; the error shows its description.
    let named = policies.last { !Self.isFile($0) }.map { $0.utf8 ?? $0.description }
    let library = try PolicyFiles.library(
      policy: named ?? earlier, layout: layout, extra: policies.filter(Self.isFile), console)
    let known = earlier.flatMap { library.policy($0) == nil ? nil : $0 }
    return try library.compile(
      PolicyRequest(
        policy: named ?? known, layout: layout, osVersion: version,
        patterns: patterns))
  }

  /// Compiles the policy for a command that shows or recovers a device and does not depend on it.
  /// If the policy that the user's files and configuration choose is invalid, warns and returns the
  /// layout's built-in one, so that a mistake in a file does not prevent a recovery.
  ///
  /// - Throws: the error of a policy that the command line names.
  func compileOrBuiltin(for layout: Layout, _ console: Console) throws -> CompiledPolicy {
    do {
      return try compile(for: layout)
    } catch {
      if console.givenOptions.contains("policy") { throw error }
      let failure = Failure(error)
      console.warning("\(failure.message); the built-in policy is used instead")
      if let hint = failure.hint { console.hint(hint) }
      return try PolicyLibrary(PolicyFiles.builtin).compile(PolicyRequest(layout: layout))
    }
  }

  /// Whether a value is the path of a file, and not the name of a policy.
  static func isFile(_ word: ByteString) -> Bool {
    word.bytes.contains(UInt8(ascii: "/"))
      || [".yaml", ".yml", ".xml", ".apk"].contains { word.hasSuffix($0) }
  }
}

/// The policy, patterns and platform version that a command uses.
struct PolicyOptions: ParsableArguments {
  @OptionGroup var choice: PolicyChoice

  @Option(
    help: ArgumentHelp(
      "Exclude entries whose path in the container matches: x, or **/x at any depth; may "
        + "be repeated.",
      valueName: "pattern"))
  var exclude: [ByteString] = []

  @Option(
    help: ArgumentHelp(
      "Keep entries that match, regardless of the policy and of --exclude; may be "
        + "repeated.",
      valueName: "pattern"))
  var include: [ByteString] = []

  @Option(
    help: ArgumentHelp(
      "The version of the platform (default: the device's).",
      valueName: "version"))
  var osVersion: String?

  /// Compiles the policy for a device. An unknown version counts as the newest, with a note if a
  /// mark depends on it.
  func compile(
    for device: Device, _ output: OutputOptions, _ console: Console,
    also patterns: [CommandLinePattern] = []
  ) throws -> CompiledPolicy {
    let policy = try compile(
      for: device.layout, version: device.osVersion?.utf8, also: patterns, console)
    if policy.osVersion == nil, !output.quiet,
      policy.markers.contains(where: { $0.versions != .all })
    {
      console.note(
        "the device's OS version is unknown: the newest is assumed; '--os-version' sets it")
    }
    return policy
  }

  /// Compiles the policy for a layout. With a console, warns as `PolicyChoice` does.
  func compile(
    for layout: Layout, version: String?, also patterns: [CommandLinePattern] = [],
    _ console: Console? = nil
  ) throws -> CompiledPolicy {
    try choice.compile(
      for: layout, version: try (osVersion ?? version).map(Self.parsed),
      patterns: exclude.map { .exclude(Pattern.Text($0)) } + patterns
        + include.map { .include(Pattern.Text($0)) }, console)
  }

  private static func parsed(_ text: String) throws -> OSVersion {
    guard let version = OSVersion(text) else {
      throw UsageError(
        .invalidValue, "'\(ByteString(text))' is not a version",
        hint: "write numbers with dots, for example 16.4")
    }
    return version
  }
}

extension Device {
  /// The platform's version for a policy, or nil if it is unknown.
  var policyVersion: OSVersion? { osVersion?.utf8.flatMap { OSVersion($0) } }
}

extension Pattern.Text {
  init(_ word: ByteString) { self.init(Array(word.bytes), shown: word.description) }
}

extension PolicyLocation {
  /// The end of the name of a policy that was converted from rules of Auto Backup.
  fileprivate static let convertedMark = " (rules of Auto Backup)"

  /// The location for the user. A position in a converted policy is not one in the user's file,
  /// whose lines the sources of the rules name.
  var text: String { file.hasSuffix(Self.convertedMark) ? file : description }
}

/// The policy files: built in, of the system, of the user, and of the command line.
enum PolicyFiles {
  /// Returns a library of all policies. `extra` are files named on the command line; `drafts`
  /// replace the policies of their names while they are checked.
  static func library(
    extra: [ByteString] = [], drafts: [PolicySource] = []
  ) throws -> PolicyLibrary {
    PolicyLibrary(builtin + (try others(extra, nil)), replacements: drafts)
  }

  /// Returns a library of the policies that a policy needs, selected by name or by layout. If all
  /// policies are built in, only those that it extends are read: reading all of them takes an
  /// eighth of the time of a small backup.
  static func library(
    policy: String?, layout: Layout, extra: [ByteString], _ console: Console? = nil
  ) throws -> PolicyLibrary {
    let others = try others(extra, console)
    let needed = BuiltinPolicies.files(policy: policy, layout: layout.rawValue)
    return PolicyLibrary(others.isEmpty && !needed.isEmpty ? sources(needed) : builtin + others)
  }

  /// The built-in policies.
  static var builtin: [PolicySource] { sources(BuiltinPolicies.files) }

  private static func sources(_ files: [BuiltinPolicies.File]) -> [PolicySource] {
    files.map { PolicySource(name: "builtin:\($0.name)", bytes: $0.bytes, origin: .builtin) }
  }

  private static func others(
    _ extra: [ByteString], _ console: Console?
  ) throws -> [PolicySource] {
    var sources = try directory("/etc/sandboxctl/policies", .system)
    if let config = Host.configurationDirectory {
      sources += try directory(config.appending("sandboxctl/policies"), .user)
    }
    return sources + (try extra.map { try given($0, console) })
  }

  /// Reads a file of the command line: a policy, or rules of Android's Auto Backup, which become
  /// one.
  private static func given(_ path: ByteString, _ console: Console?) throws -> PolicySource {
    let source = try file(path, .commandLine)
    guard AutoBackupRuleSet.begins(source.bytes) else { return source }
    var rules = AutoBackupRuleSet()
    try rules.add(path)
    if let console { rules.showRemarks(console) }
    return PolicySource(
      name: path.description + PolicyLocation.convertedMark, text: rules.overlay(of: path),
      origin: .commandLine)
  }

  /// Reads one file. If it exceeds the maximum size, one byte more than that is returned.
  static func file(_ path: ByteString, _ origin: PolicySource.Origin) throws -> PolicySource {
    let file = try Descriptor.open(path: path)
    let limit = PolicySource.maximumSize
    let bytes = try file.readAll(limit: limit) ?? file.read(count: limit + 1, at: 0)
    return PolicySource(name: path.description, bytes: bytes, origin: origin)
  }

  /// Reads the `.yaml` files in a directory; none if it does not exist.
  static func directory(_ path: ByteString, _ origin: PolicySource.Origin) throws
    -> [PolicySource]
  {
    let directory: Directory
    do throws(SystemError) {
      directory = try Directory.open(path: path)
    } catch {
      if error.isMissing { return [] }
      throw error
    }
    return try directory.names().filter { $0.description.hasSuffix(".yaml") }
      .map { try file(path.appending($0), origin) }
  }
}
