internal import Restore
internal import SandboxModel
internal import SystemIO

/// The commands to run if the platform's own program installs and removes apps.
enum PlatformCommands {
  static func commands(for request: AppChangeRequest, on device: Device) -> [String] {
    let app = FlatpakInstalls.quoted(request.app.description)
    switch device.layout {
    case .flatpak: return flatpak(request.change, of: app, on: device, identifier: request.app)
    case .snap: return snap(request.change, app)
    case .coreSimulator, .macOS, .folder: return []
    }
  }

  private static func flatpak(
    _ change: AppChange, of app: String, on device: Device, identifier: BundleIdentifier
  ) -> [String] {
    let installation = device.apps.first { $0.identifier == identifier }?.installation
    let scope = installation?.scope == .system ? "--system" : "--user"
    switch change {
    case .install, .reinstall: return ["flatpak install \(scope) \(app)"]
    case .update: return ["flatpak update \(scope) \(app)"]
    case .rollback:
      let remote = FlatpakInstalls.quoted(installation?.origin?.description ?? "<remote>")
      return [
        "flatpak remote-info --log \(remote) \(app)",
        "flatpak update \(scope) --commit=<commit> \(app)",
      ]
    case .offload, .uninstall: return ["flatpak uninstall \(scope) \(app)"]
    }
  }

  private static func snap(_ change: AppChange, _ app: String) -> [String] {
    switch change {
    case .install, .reinstall: ["snap install \(app)"]
    case .update: ["snap refresh \(app)"]
    case .rollback: ["snap revert \(app)"]
    case .offload: ["snap disable \(app)"]
    case .uninstall: ["snap remove \(app)"]
    }
  }
}
