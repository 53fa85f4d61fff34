# nix run ./packaging/nix -- compare http -n 1000
# Not tried by CI, which has no Nix; the build is the one of README.md.
{
  description = "Measure messaging protocols and servers under the same load";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      source = ../..;
      manifest = (builtins.fromTOML (builtins.readFile "${source}/Cargo.toml")).workspace.package;
    in
    {
      packages = each (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "weigh";
          version = manifest.version;
          src = source;
          cargoLock.lockFile = "${source}/Cargo.lock";
          buildFeatures = [ "full" ];
          cargoBuildFlags = [ "--bin" "weigh" ];
          nativeBuildInputs = [ pkgs.installShellFiles ];
          # They need real servers and network namespaces: .ci/run has them.
          doCheck = false;
          WEIGH_COMMIT = self.shortRev or "";
          postInstall = ''
            for shell in bash zsh fish; do $out/bin/weigh completions $shell > weigh.$shell; done
            installShellCompletion weigh.{bash,zsh,fish}
            $out/bin/weigh man --dir man && installManPage man/*.1
            $out/bin/weigh man --schemas $out/share/weigh/schemas
          '';
          meta = {
            description = "Load generator and measuring instrument for messaging protocols";
            license = with pkgs.lib.licenses; [ mit asl20 ];
            mainProgram = "weigh";
            platforms = systems;
          };
        };
      });
    };
}
